// Package hostdns lets the programs of the user's own machine find members by
// name: it decides how the machine's resolver can be told that stsd answers some
// zones, does so, and takes it back to the byte.
//
// It is cut in three. Look reads a few facts, Choose and NewPlan decide (pure),
// and Install and Uninstall act. What there was before is kept in a receipt that
// is on disk before the first file is touched, so that an installation that was
// cut short can be taken back as well.
//
//	method          where                                      who reads it
//	delegate        /etc/systemd/dns-delegate.d                systemd-resolved from 258
//	resolved        /etc/systemd/resolved.conf.d               systemd-resolved
//	networkmanager  /etc/NetworkManager/dnsmasq.d              the dnsmasq that NetworkManager runs
//	dnsmasq         /etc/dnsmasq.d                             dnsmasq
//	macos           /etc/resolver                              macOS
//	hosts           a marked block in /etc/hosts               everybody; kept up to date by the daemon
package hostdns
