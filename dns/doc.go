// Package dns gives the members of sets their names.
//
// It is cut in three: Build makes an immutable Snapshot of one moment, Snapshot.Answer decides what one client gets
// for one question (pure: no network, clock or randomness), and Server puts that on sockets and forwards foreign names.
// Most questions take a short way from packet to packet (fast.go) that decides by the same code.
//
// # Names
//
// For the set web of namespace default, governed by the service web, with member web-0 and a port http/tcp:
//
//	zone             names
//	cluster.local    web.default.svc  web-0.web.default.svc  _http._tcp.web.default.svc     as in Kubernetes
//	                 ns.dns  dns-version  and the apex with SOA and NS
//	svc              web  web-0  web-0.web  _http._tcp.web     in the namespace of the client
//	                 the same followed by a namespace: web.default  web-0.web.default
//	(none)           the names of zone svc without the suffix: web.  web-0.  web-0.web.  web.default.
//	in-addr.arpa     the addresses of managed networks, each pointing to web-0.web.default.svc.cluster.local
//
// The namespace of a client is that of the set it is a member of, else that of the network its address is in, else
// default. The names of other containers on its network answer last, and only when asked exactly.
//
// # Rules
//
//   - A name that has something at or below it is never NXDOMAIN: what is missing there is NODATA. Both carry a SOA.
//   - MemberNames says when a member's own name answers: always (its reserved address, even while it is down),
//     running, or ready (and not leaving).
//   - SetName says who is listed under the set's name: ready members; running ones; or, with peers, all running ones
//     for members of the set itself and ready ones for everybody else. A leaving member is out at once.
//   - A name without suffix is ours only if it matches exactly. Anything else is forwarded, but single labels,
//     addresses of managed networks and .local, .onion, .invalid, .localhost are denied and never leave the host.
//   - Before the first snapshot every name is SERVFAIL: any of them could be ours. So is later what a set lacks that has
//     not been seen since the start (Stale): it is not denied out of ignorance.
//   - A client is told the address on the network that it shares with a member, else the one on the member's own.
//   - Managed networks, members, loopback and the host itself are served, and sources that are allowed; others get
//     silence. The host's own processes are not forwarded for: they have a resolver, and it may be asking us.
package dns
