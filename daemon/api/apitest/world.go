package apitest

import (
	"time"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
)

// Web is the set of World.
var Web = jobspecs.Key{Namespace: jobspecs.DefaultNamespace, Name: "web"}

// World is a Service that knows one set of three members in a rollout: web-0
// runs, web-1 starts and has three containers, web-2 does not exist yet. Its list of ports is nil on
// purpose: in JSON a list is a list.
func World() *Service {
	started := Start.Add(time.Minute)
	exit, well := 137, 0
	members := []jobspecs.Member{
		{
			Namespace: "default", Set: "web", Name: "web-0", Ordinal: 0, Phase: "Running", Ready: true, Available: true,
			Revision: "web-1111111111", Image: "web:1", Restarts: 1, IP: "10.87.0.10", Role: "primary", Since: &started,
			Ports:     []jobspecs.MemberPort{{Name: "http", Container: 8080, Host: 18080, HostIP: "127.0.0.1", Protocol: "tcp"}},
			StartedAt: &started, Volumes: []string{"data-web-0"}, FQDN: "web-0.web.default.svc.cluster.local", ImageID: "sha256:1",
			Containers: []jobspecs.MemberContainer{{Name: "web", Kind: "container", Image: "web:1", ImageID: "sha256:1", State: "running", Ready: true, ExitCode: &exit, OOMKilled: true, Restarts: 1, StartedAt: &started}},
		},
		{
			Namespace: "default", Set: "web", Name: "web-1", Ordinal: 1, Phase: "Starting", Reason: "StartupPending",
			Message: "http 10.87.0.11:8080/: connection refused", Revision: "web-1111111111", Image: "web:1", IP: "10.87.0.11",
			StartedAt: &started, Volumes: []string{"data-web-1"}, FQDN: "web-1.web.default.svc.cluster.local", Since: &started,
			Containers: []jobspecs.MemberContainer{
				{Name: "prepare", Kind: "init", Image: "prepare:1", State: "exited", ExitCode: &well, StartedAt: &started},
				{Name: "exporter", Kind: "sidecar", Image: "exporter:1", State: "running", Ready: true, Restarts: 2, Signal: "SIGSEGV", StartedAt: &started},
				{Name: "web", Kind: "container", Image: "web:1", State: "running", StartedAt: &started, Reason: "StartupPending", Message: "http 10.87.0.11:8080/: connection refused"},
			},
		},
		{
			Namespace: "default", Set: "web", Name: "web-2", Ordinal: 2, Phase: "Pending", Reason: "NotCreated",
			Message: "waiting for web-1: StartupPending", Waiting: "waiting for web-1: StartupPending", Revision: "web-1111111111", Image: "web:1", IP: "10.87.0.12",
			FQDN: "web-2.web.default.svc.cluster.local",
		},
	}
	used := int64(996_461_363)
	st := jobspecs.Status{
		Namespace: "default", Name: "web", Replicas: 3, CurrentReplicas: 2, UpdatedReplicas: 2, ReadyReplicas: 1, AvailableReplicas: 1,
		CurrentRevision: "web-1111111111", UpdateRevision: "web-1111111111", Generation: 1, ObservedGeneration: 1,
		Waiting: &jobspecs.Waiting{Member: "web-1", For: "StartupPending", Since: started},
		Conditions: []jobspecs.Condition{
			{Type: jobspecs.CondAvailable, Reason: "MembersUnavailable", Message: "1 of 3 members are available", Since: Start},
			{Type: jobspecs.CondProgressing, Status: true, Reason: "Working", Message: "waiting for web-1", Since: Start},
			{Type: jobspecs.CondStalled, Since: Start},
		},
		Members: members, Volumes: []jobspecs.VolumeStatus{
			{Name: "data-web-0", Claim: "data", State: "bound", Driver: "local", Size: 1 << 30, Used: &used},
			{Name: "data-web-1", Claim: "data", Ordinal: 1, State: "bound", Driver: "local"},
		},
		Endpoints: []jobspecs.Endpoint{{Name: "web.default.svc.cluster.local", Addresses: []string{"10.87.0.10"}}},
		Strategy:  "rolling", Created: Start,
	}
	return &Service{
		Statuses: map[jobspecs.Key][]jobspecs.Status{Web: {st}},
		People:   members,
		Result:   client.Result{Namespace: "default", Set: "web", Generation: 1, Revision: "web-1111111111", Created: true, Changed: true, Message: "web created"},
		Rows: []jobspecs.SetRow{
			{Namespace: "default", Name: "web", Replicas: 3, Ready: 1, Available: 1, Updated: 2, UpdateRevision: "web-1111111111", State: "Progressing", Waiting: "waiting for web-1", Images: []string{"web:1"}, Created: Start},
			{Namespace: "prod", Name: "db", Replicas: 0, State: "Complete", Created: Start},
		},
		Plans: []jobspecs.Plan{{
			Namespace: "default", Set: "web", Generation: 1, Changes: true,
			Revision: jobspecs.PlanRevision{From: "web-1111111111", To: "web-2222222222"},
			Steps: []jobspecs.Step{
				{Op: jobspecs.OpKeepVolume, Member: "web-0", Volume: "data-web-0", Why: "bound"},
				{Op: jobspecs.OpKeep, Member: "web-0", Why: "below the partition"},
				{Op: jobspecs.OpReplace, Member: "web-1", Why: "outdated", Now: true},
				{Op: jobspecs.OpCreateVolume, Member: "web-3", Volume: "data-web-3", Why: "new"},
				{Op: jobspecs.OpCreate, Member: "web-3", Why: "missing"},
				{Op: jobspecs.OpStop, Member: "web-4", Why: "scaled down"},
			},
			Diff:     []jobspecs.Change{{Path: "container.web.image", Before: `"web:1"`, After: `"web:2"`}},
			Warnings: []string{"image web:2 is not here yet"},
		}},
		Rev: []jobspecs.HistoryRow{
			{Number: 1, Name: "web-1111111111", Created: Start, Cause: "first", Members: []string{"web-0", "web-1"}, Current: true, Update: true, Images: []string{"web:1"}, Template: jobspecs.Template(`{"a":1}`), Source: []jobspecs.Source{{Name: "web.hcl", Text: []byte("# the source\n")}}},
			{Number: 2, Name: "web-2222222222", Created: Start.Add(time.Hour), Changes: []jobspecs.Change{
				{Path: "container.web.image", Before: `"web:1"`, After: `"web:2"`}, {Path: "termination_grace", After: `"1m"`},
			}},
		},
		Why: jobspecs.Explanation{
			Namespace: "default", Member: "web-2", State: "web-2 is Pending", Because: []string{"web-2 waits for web-1", "web-1 is starting: connection refused"},
			Next: []string{"stsd logs web-1"},
		},
		Happened: []jobspecs.Event{
			{Time: Start, Namespace: "default", Set: "web", Type: "Normal", Reason: "Applied", Message: "generation 1", Count: 1, FirstTime: Start},
			{Time: Start.Add(time.Second), Namespace: "default", Set: "web", Member: "web-1", Type: "Warning", Reason: "Exited", Message: "exit code 1", Count: 3, FirstTime: Start},
		},
		Resolved: client.DNS{
			Listeners: []client.DNSListener{{Address: "10.87.0.1:53"}, {Address: "127.0.0.1:5300", Problem: "listen on 127.0.0.1:5300: bind: address already in use"}},
			Names: []client.DNSName{
				{Name: "web.svc", Type: "A", Told: []client.DNSTold{
					{To: []string{"the host", "containers of namespace default (10.87.0.0/22)"}, Rcode: "NOERROR", Records: []string{"web.svc. 5 A 10.87.0.10"}, Why: "ready members"},
					{To: []string{"members of default/web"}, Rcode: "NOERROR", Records: []string{"web.svc. 5 A 10.87.0.10", "web.svc. 5 A 10.87.0.11"}, Why: "running members, for their peers"},
				}},
				{Name: "web-9.svc", Type: "A", Told: []client.DNSTold{{To: []string{"the host", "containers of namespace default (10.87.0.0/22)"}, Rcode: "NXDOMAIN", Why: "no set or namespace of this name"}}},
				{Name: "example.test", Type: "A", Told: []client.DNSTold{{To: []string{"containers of namespace default (10.87.0.0/22)"}, Why: "not a name of ours: forwarded", Forwarded: []string{"192.0.2.1:53"}}}},
			},
		},
		Asked: []client.DNSTraced{
			{Time: Start, Client: "10.87.0.10", At: "10.87.0.1", Name: "web-1.svc.", Type: "A", Rcode: "NOERROR", Records: []string{"web-1.svc. 5 A 10.87.0.11"}, Why: "member", Microseconds: 12},
			{Time: Start.Add(time.Second), Client: "10.87.0.10", At: "10.87.0.1", TCP: true, Name: "example.test.", Type: "TYPE65", Rcode: "NXDOMAIN", Why: "not a name of ours: forwarded", Microseconds: 1500, Missed: 2},
			{Time: Start.Add(2 * time.Second), Client: "10.87.0.11", At: "10.87.0.1", Rcode: "FORMERR", Why: "could not be read as a question of class IN", Microseconds: 3},
		},
		Output: map[string][]string{"web-0": {"zero a", "zero b"}, "web-1": {"one a", "one b"}},
	}
}
