/* wire/view: the tables behind the default view, see view.h.
 *
 * A row that does not exist on a host costs one lstat at `prepare`, so the tables may be generous.
 */
#include "wire/view.h"

#include "base/mem.h"

/* What programs need to run: code, its data and its configuration. Not here, on purpose: /home,
 * /root, /var (spools, databases, container layers), /run (sockets), /srv, /mnt, /media, /boot,
 * /sys. */
const char *const view_platform[] = {
    "/usr",    "/bin", "/sbin", "/lib",       "/lib32",     "/lib64",
    "/libx32", "/opt", "/etc",  "/nix/store", "/gnu/store", "/run/current-system/sw",
    NULL,
};

const char *const view_etc_secrets[] = {
    /* password hashes and who may become whom */
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/security/opasswd",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/doas.conf",
    /* private keys of this host */
    "/etc/ssh/ssh_host_rsa_key",
    "/etc/ssh/ssh_host_dsa_key",
    "/etc/ssh/ssh_host_ecdsa_key",
    "/etc/ssh/ssh_host_ed25519_key",
    "/etc/ssl/private",
    "/etc/pki/tls/private",
    "/etc/letsencrypt",
    "/etc/krb5.keytab",
    "/etc/cryptsetup-keys.d",
    "/etc/ipsec.secrets",
    "/etc/ipsec.d/private",
    "/etc/wireguard",
    "/etc/openvpn",
    /* passwords of networks and services */
    "/etc/NetworkManager/system-connections",
    "/etc/netplan",
    "/etc/wpa_supplicant",
    "/etc/ppp",
    "/etc/apt/auth.conf",
    "/etc/apt/auth.conf.d",
    "/etc/mysql/debian.cnf",
    "/etc/postfix/sasl_passwd",
    "/etc/exim4/passwd.client",
    "/etc/docker/key.json",
    "/etc/kubernetes",
    "/etc/rancher",
    "/etc/vault.d",
    "/etc/boto.cfg",
    NULL,
};

const char *const view_home_secrets[] = {
    /* keys */
    ".ssh",
    ".gnupg",
    ".pki",
    ".putty",
    ".age",
    ".config/age",
    ".config/sops",
    ".password-store",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    /* clouds, engines, clusters */
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/doctl",
    ".config/hcloud",
    ".oci",
    ".docker",
    ".config/containers",
    ".kube",
    ".config/helm",
    ".terraform.d",
    ".terraformrc",
    ".vault-token",
    ".boto",
    ".s3cfg",
    ".config/rclone",
    /* forges, registries, databases */
    ".netrc",
    ".git-credentials",
    ".config/git/credentials",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".config/pip",
    ".gem/credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
    ".composer/auth.json",
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    /* agents and their tokens */
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".cursor",
    ".config/github-copilot",
    ".config/op",
    /* browsers and mail */
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    /* what was typed */
    ".bash_history",
    ".zsh_history",
    ".histfile",
    ".local/share/fish/fish_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".sqlite_history",
    ".rediscli_history",
    ".lesshst",
    ".viminfo",
    NULL,
};

const char *const view_host_secrets[] = {
    /* sockets of engines, buses and agents (C15, C18): a path socket ignores network namespaces */
    "/run",
    "/var/run",
    /* other people's state, and everything that services keep */
    "/var/lib/docker",
    "/var/lib/containerd",
    "/var/lib/containers",
    "/var/lib/kubelet",
    "/var/lib/rancher",
    "/var/lib/private",
    "/var/lib/mysql",
    "/var/lib/postgresql",
    "/var/lib/redis",
    "/var/lib/cloud",
    "/var/lib/systemd/credential.secret",
    "/var/lib/NetworkManager",
    "/var/lib/bluetooth",
    "/var/lib/AccountsService",
    "/var/log",
    "/var/mail",
    "/var/spool",
    "/var/backups",
    "/var/tmp",
    /* kernel interfaces and raw memory that no build needs */
    "/sys/kernel/debug",
    "/sys/kernel/tracing",
    "/sys/kernel/security",
    "/sys/firmware",
    "/boot",
    NULL,
};

const char *const view_protected[] = {".git", ".agents", ".codex", NULL};

/* TMPPREFIX is where zsh keeps here-documents (B1). Pagers and editors would wait for a person
 * (E21, E22). */
const char *const view_environment[] = {
    "PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
    "HOME=/tmp/home",
    "TMPDIR=/tmp",
    "TMPPREFIX=/tmp/zsh",
    "LANG=C.UTF-8",
    "SHELL=/bin/sh",
    "TERM=dumb",
    "PAGER=cat",
    "GIT_PAGER=cat",
    "GH_PAGER=cat",
    "GIT_EDITOR=true",
    "GIT_TERMINAL_PROMPT=0",
    "DEBIAN_FRONTEND=noninteractive",
    NULL,
};

void view_fini(struct view *v)
{
    free(v->workspace);
    for (size_t i = 0; i < v->n_mounts; i++)
        free(v->mounts[i].path);
    free(v->mounts);
    strv_fini(&v->hidden);
    strv_fini(&v->protect);
    strv_fini(&v->deny);
    strv_fini(&v->devices);
    *v = (struct view){0};
}
