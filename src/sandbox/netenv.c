/* sandbox/netenv: see netenv.h. */
#include "sandbox/netenv.h"

#include "base/mem.h"

/* NETNS_PORT_PROXY; a test compares them. */
#define DOOR "127.0.0.1:880"

static const char *const http[] = {
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "http_proxy",
    "https_proxy",
    "WS_PROXY",
    "WSS_PROXY",
    "ws_proxy",
    "wss_proxy",
    "YARN_HTTP_PROXY",
    "YARN_HTTPS_PROXY",
    "npm_config_proxy",
    "npm_config_http_proxy",
    "npm_config_https_proxy",
    "NPM_CONFIG_PROXY",
    "NPM_CONFIG_HTTP_PROXY",
    "NPM_CONFIG_HTTPS_PROXY",
    "BUNDLE_HTTP_PROXY",
    "BUNDLE_HTTPS_PROXY",
    "PIP_PROXY",
    "DOCKER_HTTP_PROXY",
    "DOCKER_HTTPS_PROXY",
    "CARGO_HTTP_PROXY",
    "GLOBAL_AGENT_HTTP_PROXY",
    "GLOBAL_AGENT_HTTPS_PROXY",
};

static const char *const socks[] = {"ALL_PROXY", "all_proxy", "FTP_PROXY", "ftp_proxy"};

static const char *const exceptions[] = {
    "NO_PROXY",      "no_proxy",        "npm_config_noproxy",    "NPM_CONFIG_NOPROXY",
    "YARN_NO_PROXY", "BUNDLE_NO_PROXY", "GLOBAL_AGENT_NO_PROXY",
};

static const char *const switches[] = {
    "CODESPACE_NETWORK=enabled",
    "ELECTRON_GET_USE_PROXY=true",
    "NODE_USE_ENV_PROXY=1",
};

static void each(const char *const *names, size_t n, const char *value,
                 void (*set)(void *user, const char *entry), void *user)
{
    for (size_t i = 0; i < n; i++) {
        autofree char *entry = mem_printf("%s=%s", names[i], value);
        set(user, entry);
    }
}

void netenv_each(void (*set)(void *user, const char *entry), void *user)
{
    each(http, ARRAY_LEN(http), "http://" DOOR, set, user);
    each(socks, ARRAY_LEN(socks), "socks5h://" DOOR, set, user);
    each(exceptions, ARRAY_LEN(exceptions), "", set, user);
    for (size_t i = 0; i < ARRAY_LEN(switches); i++)
        set(user, switches[i]);
}
