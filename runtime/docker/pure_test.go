package docker

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/volume"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
)

func TestTarHasFoldersFirstAndNumericOwners(t *testing.T) {
	t.Parallel()
	files := []jobspecs.File{
		{Path: "/etc/a", Content: []byte("a"), Mode: 0o644},
		{Path: "/srv/x/b", Content: []byte("bb"), Mode: 0o4755, Owner: "7:8"},
		{Path: "//srv/../c", Mode: 0o600, Owner: "9"},
	}
	b, err := tarFiles(files, []string{"/srv", "/srv/x"}, identity{100, 200})
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for r := tar.NewReader(bytes.NewReader(b)); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, _ := io.ReadAll(r)
		fmt.Fprintf(&got, "%c %s %o %d:%d %s\n", h.Typeflag, h.Name, h.Mode, h.Uid, h.Gid, content)
	}
	want := `5 srv/ 755 0:0 
5 srv/x/ 755 0:0 
0 etc/a 644 100:200 a
0 srv/x/b 4755 7:8 bb
0 c 600 9:0 
`
	if got.String() != want {
		t.Errorf("got:\n%swant:\n%s", &got, want)
	}
}

func TestOwnerOfFiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		owner string
		user  identity
		want  string
	}{
		{"", identity{}, "0 0 <nil>"},
		{"", identity{999, 1}, "999 1 <nil>"},
		{"5", identity{999, 1}, "5 0 <nil>"},
		{"5:6", identity{999, 1}, "5 6 <nil>"},
		{"redis", identity{}, `0 0 owner "redis": want numbers, UID or UID:GID`},
		{"5:redis", identity{}, `0 0 owner "5:redis": want numbers, UID or UID:GID`},
		{"-1", identity{}, `0 0 owner "-1": want numbers, UID or UID:GID`},
	} {
		uid, gid, err := ownerOf(jobspecs.File{Owner: c.owner}, c.user)
		if got := fmt.Sprint(uid, gid, err); got != c.want {
			t.Errorf("owner %q, user %v: %s, want %s", c.owner, c.user, got, c.want)
		}
	}
}

func TestUserOfAnImage(t *testing.T) {
	t.Parallel()
	image := accounts{
		passwd: "root:x:0:0:root:/root:/bin/sh\nredis:x:999:998::/:\nodd:x:y:1::/:\n",
		group:  "root:x:0:\nstaff:x:50:redis\nshort:x\nodd:x:y:\n",
	}
	for _, c := range []struct {
		name, user, want string
		in               accounts
	}{
		{"a name", "redis", "{999 998} <nil>", image},
		{"a name and a group", "redis:staff", "{999 50} <nil>", image},
		{"a name and a number", "redis:7", "{999 7} <nil>", image},
		{"a number and a group", "5:staff", "{5 50} <nil>", image},
		{"a group of root", ":staff", "{0 50} <nil>", image},
		{"no such user", "nobody", `{0 0} user = "nobody": the image has no such user`, image},
		{"a user without a number", "odd", `{0 0} user = "odd": the image has no such user`, image},
		{"no such group", "redis:wheel", `{999 -1} user = "redis:wheel": the image has no such group`, image},
		{"a group without a number", "redis:odd", `{999 -1} user = "redis:odd": the image has no such group`, image},
		{"an image without users", "redis", `{0 0} user = "redis": the image has no such user`, accounts{}},
	} {
		who, err := c.in.look(c.user)
		if got := fmt.Sprint(who, " ", err); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestReasonsOfTheEnginesSentences(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		of   func(string) string
		text string
		want string
	}{
		// Engine 20.10
		{startReason, "driver failed programming external connectivity on endpoint web-0 (e2): Bind for 127.0.0.1:80 failed: port is already allocated", runtime.ReasonPortTaken},
		{startReason, "driver failed programming external connectivity on endpoint web-0 (e2): Error starting userland proxy: listen tcp4 127.0.0.1:80: bind: address already in use", runtime.ReasonPortTaken},
		{startReason, "Address already in use", runtime.ReasonAddressTaken},
		{startReason, `OCI runtime create failed: container_linux.go:380: starting container process caused: exec: "x": executable file not found in $PATH: unknown`, runtime.ReasonBadCommand},
		// Engine 28
		{startReason, "failed to set up container networking: driver failed programming external connectivity on endpoint web-0: failed to bind host port for 127.0.0.1:80:10.87.0.2:80/tcp: address already in use", runtime.ReasonPortTaken},
		{startReason, "failed to set up container networking: Address already in use", runtime.ReasonAddressTaken},
		{startReason, `failed to create task for container: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: exec: "/x": permission denied: unknown`, runtime.ReasonBadCommand},
		{startReason, "unable to find user web: no matching entries in passwd file", runtime.ReasonBadCommand},
		{startReason, "error while creating mount source path: read-only file system", ""},
		{startReason, "error mounting /a to rootfs: not a directory", ""},
		{createReason, "No command specified", runtime.ReasonBadCommand},
		{createReason, "No such image: nginx:1", runtime.ReasonImageMissing},
		{createReason, "invalid volume specification", runtime.ReasonCreateFailed},
	} {
		if got := c.of(c.text); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

func TestSubnetIsTheFirstThatOverlapsNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, pool string
		used       []string
		want       string
	}{
		{"empty", "10.87.0.0/16", nil, "10.87.0.0/22"},
		{"neighbour", "10.87.0.0/16", []string{"10.87.0.0/22"}, "10.87.4.0/22"},
		{"a nameserver inside", "10.87.0.0/16", []string{"10.87.2.53/32", "10.87.5.0/24"}, "10.87.8.0/22"},
		{"the last", "10.87.248.0/21", []string{"10.87.248.0/22"}, "10.87.252.0/22"},
		{"none", "10.87.0.0/16", []string{"10.0.0.0/8"}, "false"},
		{"a small pool is one network", "10.87.0.0/24", nil, "10.87.0.0/24"},
		{"IPv6 beside", "10.87.0.0/16", []string{"fd00::/8"}, "10.87.0.0/22"},
	} {
		var used []netip.Prefix
		for _, u := range c.used {
			used = append(used, netip.MustParsePrefix(u))
		}
		p, ok := freeSubnet(netip.MustParsePrefix(c.pool), used)
		got := "false"
		if ok {
			got = p.String()
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if got := upperHalf(netip.MustParsePrefix("10.87.4.0/22")).String(); got != "10.87.6.0/23" {
		t.Errorf("upper half = %s", got)
	}
}

func TestHostsRoutesAndNameservers(t *testing.T) {
	t.Parallel()
	routes := parseRoutes(strings.NewReader(`Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	010200C0	0003	0	0	0	00000000	0	0	0
tun0	00000080	00000000	0001	0	0	0	00000080	0	0	0
docker0	000011AC	00000000	0001	0	0	0	0000FFFF	0	0	0
`))
	servers := parseNameservers(strings.NewReader("search x\nnameserver 10.255.255.53\nnameserver fe80::1%eth0\nnameserver\n"))
	if got := fmt.Sprint(routes, servers); got != "[172.17.0.0/16] [10.255.255.53/32 fe80::1/128]" {
		t.Errorf("got %s", got)
	}
}

func TestResolvConfTextReadsBack(t *testing.T) {
	t.Parallel()
	conf := resolvConf{daemon: "d1", gateway: netip.MustParseAddr("10.87.0.1"), search: []string{"default.svc.cluster.local", "svc.cluster.local"}}
	for _, up := range []bool{true, false} {
		got, ok := parseResolvConf(conf.text(up))
		if !ok || fmt.Sprint(got) != fmt.Sprint(conf) {
			t.Errorf("up %v: read back %v, %v", up, got, ok)
		}
	}
	for _, text := range []string{"", "nameserver 1.1.1.1\n", "# stsd d1 gateway x\n"} {
		if _, ok := parseResolvConf([]byte(text)); ok {
			t.Errorf("%q was taken for ours", text)
		}
	}
}

func TestResolversChangeFilesInPlaceAndSweep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var r, other resolvers
	r.init(dir, "mine")
	other.init(dir, "theirs")
	pod := func(ns, name string) *jobspecs.PodSpec {
		return &jobspecs.PodSpec{Set: jobspecs.Key{Namespace: ns, Name: "web"}, Name: name, Gateway: netip.MustParseAddr("10.87.0.1"), Search: []string{"a"}}
	}
	web0, foreign := pod("default", "web-0"), pod("prod", "web-0")
	path := must(r.begin(web0))(t)
	must(other.begin(foreign))(t)
	open := must(os.Open(path))(t) // as a container has it
	defer open.Close()

	check(t, r.set(map[string]bool{"default": true, "prod": true}))
	text := make([]byte, 1000)
	n, _ := open.ReadAt(text, 0)
	if got, want := string(text[:n]), "# stsd mine gateway 10.87.0.1\nsearch a\nnameserver 10.87.0.1\noptions ndots:5\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	check(t, r.set(nil))
	n, _ = open.ReadAt(text, 0)
	if got, want := string(text[:n]), "# stsd mine gateway 10.87.0.1\nsearch a\nnameserver 127.0.0.11\noptions ndots:1\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	theirs := must(os.ReadFile(filepath.Join(dir, "pods/prod/web-0/resolv.conf")))(t)
	if !strings.Contains(string(theirs), "127.0.0.11") {
		t.Errorf("another daemon's file was changed: %q", theirs)
	}

	r.end(web0, "c1")
	must(r.begin(web0))(t) // the next container is being made
	r.drop("c1")
	if _, err := os.Stat(path); err != nil {
		t.Error("the file went although a container is being made")
	}
	r.end(web0, "c2")
	r.drop("c2")
	if _, err := os.Stat(filepath.Dir(path)); err == nil {
		t.Error("the folder is left")
	}
}

func TestLabelsThatAreNoNamesHaveNoFolder(t *testing.T) {
	t.Parallel()
	for _, labels := range []map[string]string{
		{jobspecs.LabelNamespace: "..", jobspecs.LabelSet: "x", jobspecs.LabelOrdinal: "0"},
		{jobspecs.LabelNamespace: "a", jobspecs.LabelSet: "../../etc", jobspecs.LabelOrdinal: "0"},
		{jobspecs.LabelNamespace: "a", jobspecs.LabelSet: "b"},
	} {
		if key, ok := podOf(labels); ok {
			t.Errorf("%v was read as %v", labels, key)
		}
	}
}

func TestVolumesRememberWhatEventsLeave(t *testing.T) {
	t.Parallel()
	v := func() *Volumes { return &Volumes{valid: true, mine: map[string]*volume.Volume{"a": {Name: "a"}}} }
	for _, c := range []struct {
		name, action string
		want         bool // still valid
	}{
		{"a", "create", true},
		{"b", "create", false},
		{"a", "destroy", false},
		{"b", "destroy", true},
		{"a", "mount", true},
	} {
		s := v()
		s.note(c.action, c.name)
		if s.valid != c.want {
			t.Errorf("%s %s: valid = %v, want %v", c.action, c.name, s.valid, c.want)
		}
	}
}

// An engine asks every plugin when volumes of any driver are listed, and waits for one
// that died.
func TestVolumesAreListedOfTheDriversThatTheyHave(t *testing.T) {
	t.Parallel()
	var asked []string
	gone := false
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		if !strings.HasSuffix(r.URL.Path, "/volumes") {
			return
		}
		f := must(filters.FromJSON(r.URL.Query().Get("filters")))(t)
		drivers := f.Get("driver")
		slices.Sort(drivers)
		asked = append(asked, strings.Join(drivers, "+"))
		if gone && len(drivers) > 0 {
			http.Error(w, `{"message":"plugin \"rclone\" not found"}`, http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, `{"Volumes":[{"Name":"a","Driver":"rclone"}]}`)
	}))
	defer engine.Close()
	h := must(New(Config{Host: "tcp://" + engine.Listener.Addr().String(), Daemon: "x", RunDir: t.TempDir()}))(t)
	defer h.Close()
	list := func(want string) {
		t.Helper()
		asked = nil
		if mine, err := h.volumes.all(t.Context()); err != nil || len(mine) != 1 {
			t.Fatalf("%v, %v", mine, err)
		}
		if got := strings.Join(asked, ", "); got != want {
			t.Errorf("lists of drivers %q, want %q", got, want)
		}
	}
	list("")
	list("local+rclone")
	h.note(events.Message{Type: events.VolumeEventType, Action: "create", Actor: events.Actor{ID: "b", Attributes: map[string]string{"driver": "nfs"}}})
	list("local+nfs+rclone")
	gone = true
	list("local+nfs+rclone, ")
	h.forget()
	list("")
}

func TestHealthcheckOfAnImage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		test, shell []string
		want        string
	}{
		{nil, nil, "[]"},
		{[]string{"NONE"}, nil, "[]"},
		{[]string{"CMD"}, nil, "[]"},
		{[]string{"CMD", "a", "b"}, nil, "[a b]"},
		{[]string{"CMD-SHELL", "a || b"}, nil, "[/bin/sh -c a || b]"},
		{[]string{"CMD-SHELL", "a"}, []string{"/bin/bash", "-ec"}, "[/bin/bash -ec a]"},
	} {
		if got := fmt.Sprint(healthcheck(c.test, c.shell)); got != c.want {
			t.Errorf("%v: %s, want %s", c.test, got, c.want)
		}
	}
}

func TestListenerIsFoundByPortAndAddress(t *testing.T) {
	t.Parallel()
	table := `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 111 1
   1: 0100007F:1F91 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 222 1
   2: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 333 1
`
	for _, c := range []struct {
		port int
		ip   string
		want string
	}{
		{8080, "127.0.0.1", "111"}, {8080, "0.0.0.0", "111"}, {8080, "10.0.0.1", ""},
		{8081, "127.0.0.1", ""}, {80, "10.0.0.1", "333"},
	} {
		if got := listening(strings.NewReader(table), jobspecs.Port{Host: c.port, HostIP: c.ip}); got != c.want {
			t.Errorf("%s:%d: %q, want %q", c.ip, c.port, got, c.want)
		}
	}
}

func TestOwnersAreNamed(t *testing.T) {
	t.Parallel()
	h := &Host{cfg: Config{Daemon: "d1"}}
	for want, labels := range map[string]map[string]string{
		"not made by stsd":                     nil,
		"of another stsd, d2":                  {jobspecs.LabelDaemon: "d2"},
		"ours, of default/web":                 {jobspecs.LabelDaemon: "d1", jobspecs.LabelNamespace: "default", jobspecs.LabelSet: "web"},
		"made by docker compose, project shop": {"com.docker.compose.project": "shop"},
		"of the swarm stack shop":              {"com.docker.stack.namespace": "shop"},
	} {
		if got := h.owner(labels); got != want {
			t.Errorf("owner = %q, want %q", got, want)
		}
	}
}

func TestHintsBecomeOneWhenNobodyReads(t *testing.T) {
	t.Parallel()
	var queue []pods.Event
	for range maxQueue + 5 {
		queue = enqueue(queue, pods.Event{ID: "a"})
	}
	if len(queue) != 5 || queue[0] != (pods.Event{}) || queue[1] != (pods.Event{ID: "a"}) {
		t.Errorf("queue has %d hints, the first is %+v", len(queue), queue[0])
	}
}

func TestLogLimitsOfTheEngine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "daemon.json")
	for text, want := range map[string]bool{`{"log-opts": {"max-size": "100m"}}`: true, `{"log-driver": "json-file"}`: false, `x`: false} {
		check(t, os.WriteFile(path, []byte(text), 0o600))
		if got := logLimits(path); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	if logLimits(path + ".none") {
		t.Error("no file limits logs")
	}
}

func TestTimesOfTheEngine(t *testing.T) {
	t.Parallel()
	if got := moment("0001-01-01T00:00:00Z"); !got.IsZero() {
		t.Errorf("never = %v", got)
	}
	if got := since(time.Unix(5, 7)); got != "5.000000007" {
		t.Errorf("since = %s", got)
	}
	c := containerOf(&container.InspectResponse{
		ContainerJSONBase: &container.ContainerJSONBase{ID: "i", Name: "/web-0", Image: "sha256:1", Created: "2024-01-02T03:04:05Z",
			State: &container.State{Status: "exited", ExitCode: 1, StartedAt: "2024-01-02T03:04:06Z", FinishedAt: "0001-01-01T00:00:00Z"},
			HostConfig: &container.HostConfig{PortBindings: bindings([]jobspecs.Port{
				{Name: "b", Container: 90, Protocol: "udp", Host: 9090}, {Name: "free", Container: 70}, {Name: "a", Container: 80, Host: 8080, HostIP: "127.87.0.10"},
			})}},
		Config:          &container.Config{Image: "web:1"},
		NetworkSettings: &container.NetworkSettings{},
	})
	at := time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)
	want := pods.Container{ID: "i", Name: "web-0", State: "exited", ExitCode: 1, Image: "web:1", ImageID: "sha256:1", CreatedAt: at, StartedAt: at.Add(time.Second), Published: []jobspecs.Port{
		{Container: 80, Protocol: "tcp", Host: 8080, HostIP: "127.87.0.10"}, {Container: 90, Protocol: "udp", Host: 9090, HostIP: "127.0.0.1"},
	}}
	if fmt.Sprintf("%+v", c) != fmt.Sprintf("%+v", want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
}
