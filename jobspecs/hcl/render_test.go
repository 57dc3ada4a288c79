package hcl

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/jobspecs/examples"
)

// envOf is that of a set of three whose network begins at 10.0.0.1.
func envOf(ordinal int) Env {
	return Env{
		Revision: "r", Ordinal: ordinal, Ordinals: []int{0, 1, 2}, HostIP: netip.MustParseAddr("10.0.0.1"),
		Addresses: map[int]netip.Addr{0: netip.MustParseAddr("10.0.0.2"), 1: netip.MustParseAddr("10.0.0.3"), 2: netip.MustParseAddr("10.0.0.4")},
		Fresh:     map[int]bool{2: true},
		ImageIDs:  map[string]string{"redis:7": "sha256:7"},
	}
}

func TestRenderGivesAMemberOfTheRedisExample(t *testing.T) {
	text, _ := examples.Get("redis")
	spec := good(t, string(text)).Specs[0]
	got, err := Render(&spec.Set, spec.Template, envOf(2))
	if err != nil {
		t.Fatal(err)
	}
	want := jobspecs.PodSpec{
		Set: jobspecs.Key{Namespace: "default", Name: "redis"}, Ordinal: 2, Name: "redis-2", Revision: "r", Service: "redis",
		Domain:           "redis.default.svc.cluster.local",
		Search:           []string{"default.svc.cluster.local", "svc.cluster.local", "cluster.local"},
		Network:          "stsd",
		Address:          netip.MustParseAddr("10.0.0.4"),
		TerminationGrace: 30 * time.Second,
		Volumes:          []jobspecs.VolumeSpec{{Claim: "data", Name: "data-redis-2", Driver: "local", Size: 1 << 30}},
		Containers: []jobspecs.Container{{
			Kind: "container", Name: "redis", Image: "redis:7", ImageID: "sha256:7", Pull: "missing",
			Args:   []string{"redis-server", "/etc/redis.conf"},
			Ports:  []jobspecs.Port{{Name: "client", Container: 6379, Protocol: "tcp"}},
			Mounts: []jobspecs.Mount{{Kind: "volume", Claim: "data", Volume: "data-redis-2", Path: "/data"}},
			Files: []jobspecs.File{{Path: "/etc/redis.conf", Mode: 0o644, Content: []byte("dir /data\nappendonly yes\nbind 0.0.0.0\nprotected-mode no\n" +
				"replica-announce-ip redis-2.redis.default.svc.cluster.local\nreplicaof redis-0.redis.default.svc.cluster.local 6379\n")}},
			Readiness: &jobspecs.Probe{Exec: []string{"sh", "-c", "redis-cli ping | grep -q PONG && redis-cli info replication | grep -Eq 'role:master|master_link_status:up'"}, Period: 2 * time.Second, Timeout: 5 * time.Second, SuccessThreshold: 1, FailureThreshold: 3},
			Liveness:  &jobspecs.Probe{TCP: &jobspecs.TCPCheck{Port: 6379}, Period: 10 * time.Second, Timeout: 5 * time.Second, SuccessThreshold: 1, FailureThreshold: 3},
			Restart:   jobspecs.Restart{Initial: time.Second, Max: time.Minute, Reset: 5 * time.Minute},
		}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("pod  %+v\nwant %+v", got, want)
	}
}

func TestRenderGivesEverythingThatWasWritten(t *testing.T) {
	spec := good(t, `
		statefulset "web" {
			namespace         = "shop"
			replicas          = 3
			start_ordinal     = 5
			service           = "front"
			pod_management    = "parallel"
			recovery_wait     = "5s"
			termination_grace = "0s"
			labels            = { member = self.name, app = "web" }
			extra_hosts       = { db = self.host_ip }
			sysctls           = { "net.core.somaxconn" = 1024 }
			revision_history_limit = 3
			update {
				strategy        = "on_delete"
				partition       = 6
				max_unavailable = "30%"
				min_ready       = "3s"
			}
			dns {
				member_names = "ready"
				set_name     = "running"
				ttl          = "1s"
				negative_ttl = "0s"
			}
			volume "data" {
				size          = "${self.index + 1}GiB"
				driver        = "nfs"
				options       = { device = "/mnt/${self.ordinal}" }
				on_scale_down = "delete"
				on_delete     = "delete"
			}
			volume "log" {
			}
			container "web" {
				image       = "x"
				pull        = "never"
				command     = ["/bin/x"]
				args        = []
				env         = { A = self.name, B = self.index == 0 ? null : "b" }
				user        = "1:2"
				working_dir = "/w"
				stop_signal = "SIGINT"
				port "http" {
					container = 80
					host      = 8000 + self.index
				}
				port "dns" {
					container = 53
					protocol  = "udp"
					host      = self.index == 1 ? 53 : null
					host_ip   = "0.0.0.0"
				}
				mount "log" {
					path = "/log"
					read_only = true
				}
				mount "data" {
					path = "/b"
				}
				mount "data" {
					path = "/a"
				}
				file "/f" {
					content = self.fqdn
					mode    = "0600"
					owner   = "1:2"
				}
				probe "startup" {
					http {
						port    = "http"
						path    = "/up"
						scheme  = "https"
						headers = { Host = self.name }
					}
					initial_delay     = "1s"
					period            = "2s"
					timeout           = "3s"
					failure_threshold = 60
				}
				restart {
					first   = "1s"
					initial = "2s"
					max     = "3s"
					reset   = "4s"
				}
				resources {
					cpu    = 0.5
					memory = "64MiB"
				}
				log {
					driver  = "json-file"
					options = { max-size = "10m" }
				}
			}
		}`).Specs[0]
	replicas := 3
	wantSet := jobspecs.Set{
		Namespace: "shop", Name: "web", Replicas: &replicas, StartOrdinal: 5, Service: "front", PodManagement: "parallel",
		RecoveryWait: 5 * time.Second, RevisionHistoryLimit: 3,
		Update: jobspecs.Update{Strategy: "on_delete", Partition: 6, MaxUnavailable: "30%", MinReady: 3 * time.Second, Deadline: 10 * time.Minute, OnFailure: "pause", Order: "descending"},
		DNS:    jobspecs.DNS{MemberNames: "ready", SetName: "running", TTL: time.Second},
		Claims: []jobspecs.Claim{
			{Name: "data", OnScaleDown: "delete", OnDelete: "delete", Spec: []byte(`{"driver":"nfs","options":{"device":{"$expr":"\"/mnt/${self.ordinal}\""}},"size":{"$expr":"\"${self.index + 1}GiB\""}}`)},
			{Name: "log", OnScaleDown: "retain", OnDelete: "retain"},
		},
	}
	if !reflect.DeepEqual(spec.Set, wantSet) {
		t.Errorf("set  %+v\nwant %+v", spec.Set, wantSet)
	}
	e := envOf(6)
	e.Ordinals, e.Domain = []int{5, 6, 7}, "example"
	got, err := Render(&spec.Set, spec.Template, e)
	if err != nil {
		t.Fatal(err)
	}
	want := jobspecs.PodSpec{
		Set: jobspecs.Key{Namespace: "shop", Name: "web"}, Ordinal: 6, Name: "web-6", Revision: "r", Service: "front",
		Domain:     "front.shop.svc.example",
		Search:     []string{"shop.svc.example", "svc.example", "example"},
		Network:    "stsd.shop",
		Labels:     map[string]string{"member": "web-6", "app": "web"},
		ExtraHosts: map[string]string{"db": "10.0.0.1"},
		Sysctls:    map[string]string{"net.core.somaxconn": "1024"},
		Volumes: []jobspecs.VolumeSpec{
			{Claim: "data", Name: "shop.data-web-6", Driver: "nfs", Options: map[string]string{"device": "/mnt/6"}, Size: 2 << 30},
			{Claim: "log", Name: "shop.log-web-6", Driver: "local"},
		},
		Containers: []jobspecs.Container{{
			Kind: "container", Name: "web", Image: "x", Pull: "never", Command: []string{"/bin/x"}, Args: []string{}, Env: map[string]string{"A": "web-6", "B": "b"},
			User: "1:2", WorkingDir: "/w", StopSignal: "SIGINT",
			Ports: []jobspecs.Port{
				{Name: "dns", Container: 53, Protocol: "udp", Host: 53, HostIP: "0.0.0.0"},
				{Name: "http", Container: 80, Protocol: "tcp", Host: 8001, HostIP: "127.0.0.1"},
			},
			Mounts: []jobspecs.Mount{
				{Kind: "volume", Claim: "data", Volume: "shop.data-web-6", Path: "/a"},
				{Kind: "volume", Claim: "data", Volume: "shop.data-web-6", Path: "/b"},
				{Kind: "volume", Claim: "log", Volume: "shop.log-web-6", Path: "/log", ReadOnly: true},
			},
			Files: []jobspecs.File{{Path: "/f", Content: []byte("web-6.front.shop.svc.example"), Mode: 0o600, Owner: "1:2"}},
			Startup: &jobspecs.Probe{
				HTTP:         &jobspecs.HTTPCheck{Port: 80, Path: "/up", Scheme: "https", Headers: map[string]string{"Host": "web-6"}},
				InitialDelay: time.Second, Period: 2 * time.Second, Timeout: 3 * time.Second, SuccessThreshold: 1, FailureThreshold: 60,
			},
			Restart: jobspecs.Restart{First: time.Second, Initial: 2 * time.Second, Max: 3 * time.Second, Reset: 4 * time.Second},
			CPU:     0.5, Memory: 64 << 20,
			Log: &jobspecs.Log{Driver: "json-file", Options: map[string]string{"max-size": "10m"}},
		}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("pod  %+v\nwant %+v", got, want)
	}
	wantPorts := []jobspecs.Port{{Name: "dns", Container: 53, Protocol: "udp"}, {Name: "http", Container: 80, Protocol: "tcp"}}
	if !reflect.DeepEqual(spec.Ports, wantPorts) {
		t.Errorf("ports %v, want %v", spec.Ports, wantPorts)
	}
}

func TestSelfAndSetAreWhatTheSpecSays(t *testing.T) {
	for _, c := range []struct {
		expr    string
		ordinal int
		want    string
	}{
		{"self.ordinal", 1, "1"},
		{"self.index", 1, "1"},
		{"self.name", 1, "web-1"},
		{"self.fqdn", 1, "web-1.web.default.svc.cluster.local"},
		{"self.ip", 1, "10.0.0.3"},
		{"self.host_ip", 1, "10.0.0.1"},
		{"self.fresh", 1, "false"},
		{"self.fresh", 2, "true"},
		{"set.name", 1, "web"},
		{"set.namespace", 1, "default"},
		{"set.service", 1, "web"},
		{"set.replicas", 1, "3"},
		{"set.fqdn", 1, "web.default.svc.cluster.local"},
		{"set.first.name", 1, "web-0"},
		{"set.formed", 1, "false"},
		{`join(",", set.members[*].name)`, 1, "web-0,web-1,web-2"},
		{`join(",", set.peers[*].name)`, 1, "web-0,web-2"},
		{`join(",", [for m in set.peers : m.ip if m.ordinal < self.ordinal])`, 2, "10.0.0.2,10.0.0.3"},
		{`join(",", set.members[*].name)`, 7, "web-0,web-1,web-2"},
		{`join(",", set.peers[*].name)`, 7, "web-0,web-1,web-2"},
		{"self.index", 7, "7"},
		{"self.ip", 7, ""},
		{"length(set)", 1, "9"},
		{`set["first"]["name"]`, 1, "web-0"},
	} {
		spec := good(t, web("user = "+c.expr)).Specs[0]
		got, err := Render(&spec.Set, spec.Template, envOf(c.ordinal))
		if err != nil {
			t.Errorf("%s: %v", c.expr, err)
			continue
		}
		if user := got.Containers[0].User; user != c.want {
			t.Errorf("%s of web-%d = %q, want %q", c.expr, c.ordinal, user, c.want)
		}
	}
}

func TestRenderNeedsNoneOfTheOthersToRemoveTheLastMember(t *testing.T) {
	spec := good(t, web(`user = "${set.first.name} ${join(",", set.peers[*].name)}"`)).Specs[0]
	got, err := Render(&spec.Set, spec.Template, Env{Ordinal: 0})
	if err != nil || got.Containers[0].User != "web-0 " {
		t.Errorf("user %q, %v", got.Containers[0].User, err)
	}
}

func TestAnOldTemplateKeepsItsServiceAndClaims(t *testing.T) {
	old := good(t, "statefulset \"web\" {\nservice = \"old\"\nvolume \"a\" {\n}\ncontainer \"c\" {\nimage = \"x\"\nuser = set.service\nmount \"a\" {\npath = \"/a\"\n}\n}\n}").Specs[0]
	now := good(t, "statefulset \"web\" {\nvolume \"b\" {\ndriver = \"nfs\"\n}\ncontainer \"c\" {\nimage = \"x\"\nmount \"b\" {\npath = \"/b\"\n}\n}\n}").Specs[0]
	got, err := Render(&now.Set, old.Template, envOf(0))
	if err != nil {
		t.Fatal(err)
	}
	want := []jobspecs.VolumeSpec{{Claim: "a", Name: "a-web-0", Driver: "local"}}
	if got.Service != "old" || got.Containers[0].User != "old" || !reflect.DeepEqual(got.Volumes, want) {
		t.Errorf("service %q, user %q, volumes %v", got.Service, got.Containers[0].User, got.Volumes)
	}
}

func TestRenderErrorsNameMemberAndAttribute(t *testing.T) {
	for _, c := range []struct{ lines, want string }{
		{"env = { A = set.members[2].name }", "render web-0: container.web.env.A: set.members[2].name: invalid index: The given key does not identify an element in this collection value."},
		{"args = [\"a\", set.members[2].name]", "render web-0: container.web.args[1]: set.members[2].name: invalid index: The given key does not identify an element in this collection value."},
	} {
		spec := good(t, web(c.lines)).Specs[0]
		_, err := Render(&spec.Set, spec.Template, Env{Ordinals: []int{0}})
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %s\nwant %s", c.lines, got, c.want)
		}
	}
	spec := good(t, web("port \"a\" {\ncontainer = 60000 + set.replicas\n}")).Specs[0]
	e := Env{}
	for i := range 6000 {
		e.Ordinals = append(e.Ordinals, i)
	}
	_, err := Render(&spec.Set, spec.Template, e)
	if want := "render web-0: container.web.port.a.container: 66000 is not a whole number from 1 to 65535"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestCheckFindsWhatMoreReplicasBreak(t *testing.T) {
	spec := good(t, strings.Replace(web("port \"a\" {\ncontainer = 80\nhost = 80\n}"), "replicas = 3\n", "", 1)).Specs[0]
	if err := Check(&spec.Set, spec.Template, nil); err != nil {
		t.Error(err)
	}
	replicas := 2
	spec.Set.Replicas = &replicas
	err := Check(&spec.Set, spec.Template, nil)
	if want := "default/web: container.web.port.a.host: host port 80/tcp would be published twice: by web-0 and by web-1"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A long set must not take a time that grows with the square of its length.
func BenchmarkRenderAll(b *testing.B) {
	f, _ := parse(strings.Replace(web(`args = [self.fqdn, join(",", set.peers[*].fqdn)]`), "3", "100", 1))
	spec := f.Specs[0]
	e := sampleOf(&spec.Set, 0, nil)
	for b.Loop() {
		if _, err := RenderAll(&spec.Set, spec.Template, e, e.Ordinals); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRender(b *testing.B) {
	text, _ := examples.Get("redis")
	f, _ := parse(string(text))
	spec := f.Specs[0]
	for b.Loop() {
		if _, err := Render(&spec.Set, spec.Template, envOf(1)); err != nil {
			b.Fatal(err)
		}
	}
}
