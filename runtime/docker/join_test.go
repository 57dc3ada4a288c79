package docker

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
)

// userNetwork is one that somebody else made. It is to be made before the env of
// the test, whose containers go first.
func userNetwork(t *testing.T, name string, six netip.Prefix) network.Inspect {
	t.Helper()
	needDocker(t)
	yes := six.IsValid()
	o := network.CreateOptions{EnableIPv6: &yes, Labels: map[string]string{"com.docker.compose.project": "shop"}}
	if yes {
		four := fmt.Sprintf("10.%d.%d.0/26", 248+randomByte()%4, randomByte())
		o.IPAM = &network.IPAM{Config: []network.IPAMConfig{{Subnet: four}, {Subnet: six.String()}}}
	}
	made, err := raw().NetworkCreate(t.Context(), name, o)
	if err != nil && yes {
		t.Skipf("this engine makes no network with IPv6: %v", err)
	}
	check(t, err)
	t.Cleanup(func() { check(t, raw().NetworkRemove(context.Background(), made.ID)) })
	return must(raw().NetworkInspect(t.Context(), made.ID, network.InspectOptions{}))(t)
}

func randomSix() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 0x57, randomByte(), randomByte(), randomByte(), randomByte()}), 64)
}

// plain runs a container that is none of ours on a network to its end and returns
// what it printed; of one that sleeps, its id.
func (e *env) plain(on string, aliases []string, words ...string) string {
	e.t.Helper()
	ctx := e.t.Context()
	c := must(raw().ContainerCreate(ctx, &container.Config{Image: e.image, Cmd: words},
		&container.HostConfig{NetworkMode: container.NetworkMode(on)},
		&network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{on: {Aliases: aliases}}}, nil, "plain-"+random()))(e.t)
	e.t.Cleanup(func() {
		err := raw().ContainerRemove(context.Background(), c.ID, container.RemoveOptions{Force: true, RemoveVolumes: true})
		if err != nil && !isNotFound(err) {
			e.t.Error(err)
		}
	})
	if words[0] == "sleep" {
		check(e.t, raw().ContainerStart(ctx, c.ID, container.StartOptions{}))
		return c.ID
	}
	ended, errs := raw().ContainerWait(ctx, c.ID, container.WaitConditionNextExit)
	check(e.t, raw().ContainerStart(ctx, c.ID, container.StartOptions{}))
	select {
	case <-ended:
	case err := <-errs:
		e.t.Fatal(err)
	}
	logs := must(raw().ContainerLogs(ctx, c.ID, container.LogsOptions{ShowStdout: true, ShowStderr: true}))(e.t)
	defer logs.Close()
	var out bytes.Buffer
	must(stdcopy.StdCopy(&out, &out, logs))(e.t)
	return out.String()
}

func TestAMemberIsFoundOnANetworkOfOthers(t *testing.T) {
	t.Parallel()
	six := randomSix()
	name := "a-shop-" + random() // before "stsd…" in the order of names
	before := userNetwork(t, name, six)
	e := newEnv(t)
	s := e.spec("web", 0, func(s *pods.ContainerSpec) { s.Pod.Networks = []string{name} })
	id := must(e.Create(t.Context(), s))(t)
	if c := must(e.Inspect(t.Context(), id))(t); c.Address != s.Pod.Address || c.Joined != nil {
		t.Errorf("created: at %v, joined %v, want %v and none", c.Address, c.Joined, s.Pod.Address)
	}
	check(t, e.Start(t.Context(), id))
	c := must(e.Inspect(t.Context(), id))(t)
	if c.Address != s.Pod.Address || len(c.Joined) != 1 || c.Joined[0].Network != name || len(c.Joined[0].Addresses) != 2 ||
		!subnetOf(&before).Contains(c.Joined[0].Addresses[0]) || !six.Contains(c.Joined[0].Addresses[1]) {
		t.Fatalf("at %v, joined %+v, want %v and an address in each of %v and %v", c.Address, c.Joined, s.Pod.Address, subnetOf(&before), six)
	}
	at := c.Joined[0].Addresses

	list := fmt.Sprint([]string{at[0].String(), at[1].String()})
	want := fmt.Sprintf("web-0 %s false\nweb %s false\nweb-0.web %s false\n", list, list, list)
	if got := e.plain(name, nil, "lookup", "web-0", "web", "web-0.web"); got != want {
		t.Errorf("a plain container finds\n%swant\n%s", got, want)
	}
	other := e.plain(name, []string{"db"}, "sleep")
	full := must(raw().ContainerInspect(t.Context(), other))(t)
	theirs := parsed(full.NetworkSettings.Networks[name].IPAddress, full.NetworkSettings.Networks[name].GlobalIPv6Address)
	wantNetworks := []Network{
		{Namespace: e.ns, Name: name, Subnet: subnetOf(&before), More: []netip.Prefix{six}, Gateway: gatewayOf(&before),
			Others: map[string][]netip.Addr{"db": theirs, strings.TrimPrefix(full.Name, "/"): theirs}},
		{Namespace: e.ns, Name: s.Pod.Network, Subnet: s.Pod.Subnet, Gateway: s.Pod.Gateway, Others: map[string][]netip.Addr{}},
	}
	for range 2 { // asked, and remembered
		if got := must(e.Networks(t.Context()))(t); !reflect.DeepEqual(got, wantNetworks) {
			t.Errorf("networks = %+v\nwant       %+v", got, wantNetworks)
		}
	}
	check(t, raw().NetworkDisconnect(t.Context(), s.Pod.Network, id, false)) // it is not on its own network any more, and nowhere else by that
	if c := must(e.Inspect(t.Context(), id))(t); c.Address.IsValid() || len(c.Joined) != 1 {
		t.Errorf("off its network: at %v, joined %v", c.Address, c.Joined)
	}

	check(t, e.Stop(t.Context(), id, "", 0))
	if c := must(e.Inspect(t.Context(), id))(t); c.Joined != nil {
		t.Errorf("an ended container is on %v", c.Joined)
	}
	check(t, e.Remove(t.Context(), id))
	check(t, raw().ContainerRemove(t.Context(), other, container.RemoveOptions{Force: true, RemoveVolumes: true}))
	after := must(raw().NetworkInspect(t.Context(), before.ID, network.InspectOptions{}))(t)
	if !reflect.DeepEqual(after, before) {
		t.Errorf("the network is %+v\nand was        %+v", after, before)
	}
}

func TestANetworkThatIsNotThereIsNamedAndNotMade(t *testing.T) {
	t.Parallel()
	name := "shop-" + random()
	e := newEnv(t)
	missing := func(name string) string {
		return fmt.Sprintf("network %s is not there: start what makes it, or make it (docker network create %s)", name, name)
	}
	joins := func(name string) pods.ContainerSpec {
		return e.spec("web", 0, func(s *pods.ContainerSpec) { s.Pod.Networks = []string{name} })
	}
	_, err := e.Create(t.Context(), joins(name))
	wantProblem(t, err, runtime.ReasonNetworkMissing, missing(name))
	if list := must(e.List(t.Context()))(t); len(list) != 0 {
		t.Errorf("%d containers are left behind", len(list))
	}
	if _, err := raw().NetworkInspect(t.Context(), name, network.InspectOptions{}); !isNotFound(err) {
		t.Errorf("the network was made: %v", err)
	}

	events := must(e.Watch(t.Context()))(t)
	n := userNetworkOf(t, name)
	for got := range events { // those of other tests come in between
		if got == (pods.Event{Freed: true}) {
			break
		}
	}
	_, err = e.Create(t.Context(), joins(n.ID[:12])) // the engine would take it for the network
	wantProblem(t, err, runtime.ReasonNetworkMissing, missing(n.ID[:12]))

	id := must(e.Create(t.Context(), joins(name)))(t)
	check(t, raw().NetworkRemove(t.Context(), n.ID))
	wantProblem(t, e.Start(t.Context(), id), runtime.ReasonNetworkMissing, missing(name))
}

// userNetworkOf is for a test that removes it by itself.
func userNetworkOf(t *testing.T, name string) network.Inspect {
	t.Helper()
	made := must(raw().NetworkCreate(t.Context(), name, network.CreateOptions{}))(t)
	t.Cleanup(func() { raw().NetworkRemove(context.Background(), made.ID) })
	return must(raw().NetworkInspect(t.Context(), made.ID, network.InspectOptions{}))(t)
}

func TestALostReplyOfAJoinIsHealed(t *testing.T) {
	t.Parallel()
	name := "shop-" + random()
	userNetwork(t, name, netip.Prefix{})
	e := newEnv(t)
	s := e.spec("web", 0, func(s *pods.ContainerSpec) { s.Pod.Networks = []string{name} })
	id := must(e.Create(t.Context(), s))(t)
	if again := must(e.Create(t.Context(), s))(t); again != id {
		t.Errorf("created %s and %s", id, again)
	}
	check(t, e.Start(t.Context(), id))
	if c := must(e.Inspect(t.Context(), id))(t); len(c.Joined) != 1 {
		t.Errorf("joined %v", c.Joined)
	}
}

func TestTheSandboxJoinsForItsPod(t *testing.T) {
	t.Parallel()
	name := "shop-" + random()
	userNetwork(t, name, netip.Prefix{})
	e := newEnv(t)
	s := e.spec("web", 0, func(s *pods.ContainerSpec) { s.Pod.Networks = []string{name} })
	side := s.Main
	side.Name = "side"
	sandbox, ids := e.several(s, s.Main, side)
	if c := must(e.Inspect(t.Context(), sandbox))(t); c.Address != s.Pod.Address || len(c.Joined) != 1 {
		t.Errorf("sandbox: at %v, joined %v", c.Address, c.Joined)
	}
	for _, id := range ids {
		if c := must(e.Inspect(t.Context(), id))(t); c.Address.IsValid() || c.Joined != nil {
			t.Errorf("%s: at %v, joined %v, want the sandbox to have them", c.Name, c.Address, c.Joined)
		}
	}
	if got := e.plain(name, nil, "lookup", "web-0"); !strings.HasPrefix(got, "web-0 [") || !strings.HasSuffix(got, "] false\n") {
		t.Errorf("a plain container finds %s", got)
	}
	e.endPod(append(ids, sandbox)...)
}

// A namespace's network that was made beforehand, as ours, may have IPv6.
func TestAMemberHasBothAddressesOnANetworkWithIPv6(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	s, six := e.spec("web", 0), randomSix()
	yes := true
	_, err := raw().NetworkCreate(t.Context(), s.Pod.Network, network.CreateOptions{
		EnableIPv6: &yes,
		Labels:     map[string]string{jobspecs.LabelDaemon: e.cfg.Daemon, jobspecs.LabelNamespace: e.ns},
		IPAM: &network.IPAM{Config: []network.IPAMConfig{
			{Subnet: s.Pod.Subnet.String(), IPRange: upperHalf(s.Pod.Subnet).String(), Gateway: s.Pod.Gateway.String()}, {Subnet: six.String()},
		}},
	})
	if err != nil {
		t.Skipf("this engine makes no network with IPv6: %v", err)
	}
	c := must(e.Inspect(t.Context(), e.run(s)))(t)
	if c.Address != s.Pod.Address || !six.Contains(c.Address6) || c.Joined != nil {
		t.Errorf("at %v and %v, joined %v", c.Address, c.Address6, c.Joined)
	}
}

func TestAddressesOfEndpoints(t *testing.T) {
	t.Parallel()
	endpoints := map[string]*network.EndpointSettings{
		"a":    {EndpointID: "1", IPAddress: "172.20.0.2", GlobalIPv6Address: "fd00::2"},
		"b":    {IPAddress: ""},
		"c":    {EndpointID: "3"},
		"nil":  nil,
		"stsd": {EndpointID: "2", IPAddress: "10.87.0.10", GlobalIPv6Address: "fd00:1::2", IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: "10.87.0.10"}},
	}
	at := netip.MustParseAddr
	if got, six := address(endpoints, "stsd"), address6(endpoints, "stsd"); got != at("10.87.0.10") || six != at("fd00:1::2") {
		t.Errorf("own: %v, %v", got, six)
	}
	if got, six := address(endpoints, "gone"), address6(endpoints, "gone"); got.IsValid() || six.IsValid() {
		t.Errorf("taken off: %v, %v", got, six)
	}
	if got := address(endpoints, ""); got != at("172.20.0.2") {
		t.Errorf("of a foreign container: %v", got)
	}
	want := []runtime.Endpoint{{Network: "a", Addresses: []netip.Addr{at("172.20.0.2"), at("fd00::2")}}, {Network: "c"}}
	if got := joined(endpoints, "stsd"); !reflect.DeepEqual(got, want) {
		t.Errorf("joined = %v, want %v", got, want)
	}
	if got := joined(endpoints, ""); got != nil {
		t.Errorf("a foreign container joined %v", got)
	}
}
