/* lookup NAME… prints the IPv4 addresses of each name, one a line; exit 1 if one has none. */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>

static int lookup(const char *name)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM }, *all, *one;
	int err = getaddrinfo(name, 0, &hints, &all);

	if (err) {
		fprintf(stderr, "%s: %s\n", name, gai_strerror(err));
		return 1;
	}
	for (one = all; one; one = one->ai_next) {
		char text[INET_ADDRSTRLEN];
		struct sockaddr_in *in = (struct sockaddr_in *)one->ai_addr;

		if (one->ai_family == AF_INET)
			puts(inet_ntop(AF_INET, &in->sin_addr, text, sizeof text));
	}
	freeaddrinfo(all);
	return 0;
}

int main(int argc, char **argv)
{
	int failed = 0;

	for (int i = 1; i < argc; i++)
		failed |= lookup(argv[i]);
	return failed;
}
