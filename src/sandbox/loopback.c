/* sandbox/loopback: see loopback.h. */
#include "sandbox/loopback.h"

#include "base/mem.h"

#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

int loopback_up(void)
{
    struct ifreq lo = {.ifr_name = "lo"};
    autofd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &lo) < 0)
        return -errno;
    lo.ifr_flags |= IFF_UP;
    return ioctl(fd, SIOCSIFFLAGS, &lo) < 0 ? -errno : 0;
}
