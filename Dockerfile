# The daemon as an image: `make build`, then `docker build -t stsd .`; how to run it stands in docs/dns-host.md.
# bin/stsd is static and needs nothing beside it.
FROM scratch
COPY bin/stsd /stsd
ENV PATH=/
VOLUME /var/lib/stsd
ENTRYPOINT ["/stsd"]
CMD ["daemon"]
