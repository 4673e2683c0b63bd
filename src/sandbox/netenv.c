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

/* Those that replace what a program trusts, and those that add to it. */
static const char *const trust[] = {
    "SSL_CERT_FILE",                      /* OpenSSL and what stands on it: Python, Ruby; Go */
    "CURL_CA_BUNDLE",                     /* curl */
    "GIT_SSL_CAINFO",                     /* git */
    "NODE_EXTRA_CA_CERTS",                /* node */
    "DENO_CERT",                          /* deno */
    "REQUESTS_CA_BUNDLE",                 /* Python's requests */
    "PIP_CERT",                           /* pip */
    "HTTPLIB2_CA_CERTS",                  /* Google's and other Python clients */
    "CARGO_HTTP_CAINFO",                  /* cargo */
    "BUNDLE_SSL_CA_CERT",                 /* bundler */
    "AWS_CA_BUNDLE",                      /* the AWS command line and libraries */
    "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", /* gcloud */
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",   /* gRPC */
    "HEX_CACERTS_PATH",                   /* Elixir's hex */
    "NIX_SSL_CERT_FILE",                  /* nix */
    "PERL_LWP_SSL_CA_FILE",               /* perl */
    "CODESPACE_CA_FILE",
    "npm_config_cafile", /* npm, pnpm; in the spelling of each */
    "NPM_CONFIG_CAFILE",
    "YARN_HTTPS_CA_FILE_PATH", /* yarn */
};

static void each(const char *const *names, size_t n, const char *value,
                 void (*set)(void *user, const char *entry), void *user)
{
    for (size_t i = 0; i < n; i++) {
        autofree char *entry = mem_printf("%s=%s", names[i], value);
        set(user, entry);
    }
}

void netenv_each_ca(void (*set)(void *user, const char *entry), void *user)
{
    each(trust, ARRAY_LEN(trust), NETCA_FILE, set, user);
}

void netenv_each(void (*set)(void *user, const char *entry), void *user)
{
    each(http, ARRAY_LEN(http), "http://" DOOR, set, user);
    each(socks, ARRAY_LEN(socks), "socks5h://" DOOR, set, user);
    each(exceptions, ARRAY_LEN(exceptions), "", set, user);
    for (size_t i = 0; i < ARRAY_LEN(switches); i++)
        set(user, switches[i]);
}
