package jobspecs

import (
	"net/netip"
	"reflect"
	"testing"
)

func TestPublish(t *testing.T) {
	t.Parallel()
	free := Port{Name: "client", Container: 6379, Protocol: "tcp"}
	fixed := Port{Name: "client", Container: 6379, Protocol: "tcp", Host: 7001, HostIP: "127.0.0.1"}
	at := func(p Port, ip string, host int) Port {
		p.HostIP, p.Host = ip, host
		return p
	}
	nameless := func(p Port) Port {
		p.Name = ""
		return p
	}
	tests := []struct {
		name    string
		mode    string
		address string
		port    Port
		want    []Port
	}{
		{"direct publishes nothing", HostDirect, "10.87.0.11", free, []Port{free}},
		{"none publishes nothing", HostNone, "10.87.0.11", free, []Port{free}},
		{"none leaves what the spec publishes", HostNone, "10.87.0.11", fixed, []Port{fixed}},
		{"loopback publishes at an address of the member's own", HostLoopback, "10.87.0.11", free, []Port{at(free, "127.87.0.11", 6379)}},
		{"loopback goes beside what the spec publishes", HostLoopback, "10.87.0.11", fixed, []Port{fixed, nameless(at(fixed, "127.87.0.11", 6379))}},
		{"loopback of a member without an address is nothing", HostLoopback, "", free, []Port{free}},
		{"loopback of a member without an address leaves what the spec publishes", HostLoopback, "", fixed, []Port{fixed}},
		{"ports adds the ordinal", HostPorts, "10.87.0.11", free, []Port{at(free, "127.0.0.1", 6380)}},
		{"ports leaves what the spec publishes", HostPorts, "", fixed, []Port{fixed}},
		{"ports where the spec says the same", HostPorts, "", at(fixed, "127.0.0.1", 6380), []Port{at(fixed, "127.0.0.1", 6380)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			before := []Container{{Name: "redis", Ports: []Port{tt.port}}}
			p := PodSpec{Ordinal: 1, Containers: before}
			if tt.address != "" {
				p.Address = netip.MustParseAddr(tt.address)
			}
			p.Publish(tt.mode)
			if got := p.Containers[0].Ports; !reflect.DeepEqual(got, tt.want) {
				t.Errorf("ports %+v, want %+v", got, tt.want)
			}
			p.Unpublish(tt.mode)
			same := tt.want[0] == tt.port && len(tt.want) == 1 // the spec says what the mode would
			if got := p.Containers[0].Ports; !reflect.DeepEqual(got, []Port{tt.port}) && !same {
				t.Errorf("taken back %+v, want %+v", got, tt.port)
			}
			if got := before[0].Ports; !reflect.DeepEqual(got, []Port{tt.port}) {
				t.Errorf("what others hold became %+v", got)
			}
		})
	}
}

func TestLoopbackOf(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"10.87.0.10":        "127.87.0.10",
		"::ffff:10.87.0.10": "127.87.0.10",
		"172.18.3.4":        "127.18.3.4",
		"10.0.0.1":          "127.255.0.1",
		"fd00::1":           "invalid IP",
		"10.255.255.254":    "127.255.255.254",
		"192.168.100.200":   "127.168.100.200",
		"10.1.0.53":         "127.1.0.53",
	} {
		if got := LoopbackOf(netip.MustParseAddr(address)).String(); got != want {
			t.Errorf("loopback of %s is %s, want %s", address, got, want)
		}
	}
	if got := LoopbackOf(netip.Addr{}); got.IsValid() {
		t.Errorf("loopback of no address is %s", got)
	}
}

func TestHostAddress(t *testing.T) {
	t.Parallel()
	a := netip.MustParseAddr("10.87.0.10")
	for mode, want := range map[string]string{
		HostDirect: "invalid IP", HostNone: "invalid IP", HostLoopback: "127.87.0.10", HostPorts: "127.0.0.1",
	} {
		if got := HostAddress(mode, a).String(); got != want {
			t.Errorf("%s: %s, want %s", mode, got, want)
		}
	}
	if l, m := HostAccessOn("linux"), HostAccessOn("darwin"); l != HostDirect || m != HostLoopback {
		t.Errorf("by default %s on Linux and %s on macOS", l, m)
	}
}
