package conformance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stsd/stsd/jobspecs"
)

// Tests of the pod agent, which stands where a kubelet does.
const (
	agent        = "runtime/pods"
	ofProbes     = "TestProbesAsAKubeletHasThem"
	ofProbesIn   = "TestProbesInTimeAsAKubeletHasThem"
	ofHooks      = "TestHooksAsAKubeletHasThem"
	ofInits      = "TestInitContainersAsAKubeletHasThem"
	ofLife       = "TestTheLifeOfAPodAsAKubeletHasIt"
	ofGiven      = "TestWhatAPodIsGivenAsAKubeletHasIt"
	dockerEngine = "runtime/docker"
)

// kubelet is a scenario that the pod agent's tests show by its id.
func kubelet(id, test, given, when, then string) row {
	return is(id, given, when, then, nil).in(agent, test, "")
}

// onDocker is one that needs Docker itself; text is what its test mentions.
func onDocker(id, test, text, given, when, then string) row {
	return is(id, given, when, then, nil).in(dockerEngine, test, text)
}

func probes() []row {
	return []row{
		kubelet("N1", ofProbes, "readiness with an initial delay", "it has not passed", "the member is not ready, and not restarted"),
		kubelet("N2", ofProbes, "readiness that fails", "time passes", "it is never ready, and not restarted"),
		kubelet("N3", ofProbes, "exec liveness that fails", "its threshold is reached", "it is restarted"),
		kubelet("N4", ofProbes, "exec liveness that succeeds", "time passes", "it is not restarted"),
		kubelet("N5", ofProbes, "http liveness that fails", "its threshold is reached", "it is restarted"),
		kubelet("N6", ofProbes, "tcp liveness that succeeds", "time passes", "it is not restarted"),
		kubelet("N7", ofProbesIn, "liveness that fails again and again", "time passes", "the count of restarts only grows"),
		kubelet("N8", ofProbes, "http liveness that succeeds", "time passes", "it is not restarted"),
		kubelet("N9", ofProbes, "exec liveness that takes longer than its time-out", "it is run", "it is restarted"),
		kubelet("N10", ofProbes, "exec readiness that takes longer than its time-out", "it is run", "it is not ready"),
		kubelet("N11", ofProbes, "exec that would fail after its time-out", "it is run", "it is restarted"),
		onDocker("N12", "TestHTTPProbe", "/here", "http that is redirected on the same host", "it is asked", "the answer at the end counts"),
		onDocker("N13", "TestHTTPProbe", "/away", "http that is redirected to another host", "it is asked", "that is a success, and the other host is not asked"),
		kubelet("N14", ofProbes, "a startup probe that fails", "its time is over", "it is restarted"),
		kubelet("N15", ofProbesIn, "a startup probe that is pending", "liveness would fail", "it is not asked"),
		kubelet("N16", ofProbesIn, "a startup probe that succeeded", "liveness fails", "it is restarted"),
		kubelet("N17", ofProbesIn, "readiness with a long period", "startup succeeds", "it is ready promptly"),
		none("N18-N19", "a probe has no grace of its own: whatever ends a container gives it the pod's"),
		kubelet("N20", ofProbes, "grpc that serves", "it is asked", "it is not restarted"),
		kubelet("N21", ofProbes, "grpc of another service", "it is asked", "it is restarted"),
		kubelet("N22", ofProbesIn, "a ready member", "it ends and its process shuts down", "it is not ready any more"),
		kubelet("N23", ofProbesIn, "a member that ends", "liveness fails", "nothing is restarted; readiness is still asked"),
	}
}

func probeWorker() []row {
	return []row{
		kubelet("O1", ofProbesIn, "probes that were not asked yet", "a pod starts", "it is alive, not ready, and starting"),
		kubelet("O2", ofProbesIn, "a failure threshold of 3", "checks fail", "the third flips it, one success flips it back"),
		kubelet("O3", ofProbesIn, "a success threshold of 3", "checks succeed", "the third flips it, one failure flips it back"),
		kubelet("O4", ofProbesIn, "startup that succeeded", "the check would fail later", "it is not asked again until the container changes"),
		kubelet("O5", ofProbesIn, "a startup threshold of 3", "checks fail", "it is pending, pending, given up"),
		kubelet("O6", ofProbesIn, "liveness that failed", "the container has not changed yet", "it is not asked; the new one counts anew"),
		kubelet("O7", ofProbesIn, "failures of one container", "another one runs", "they do not count"),
		kubelet("O8", ofProbesIn, "all three probes", "startup is pending", "only it is asked, afterwards only the others"),
		kubelet("O9", ofProbesIn, "a ready pod", "stsd restarts", "the first answer restores what was known"),
		kubelet("O10", ofProbesIn, "a pod that was stopped, one that is restarted", "time passes", "the first is not asked any more, the second is"),
		kubelet("O11", ofProbesIn, "a check that cannot be run", "its answer comes", "it is dropped: neither success nor failure"),
		kubelet("O12", ofProbesIn, "containers that are probed", "the pod is removed", "nothing is asked any more"),
		kubelet("O13", ofProbesIn, "no readiness probe", "a container starts, waits or has ended", "started is ready, the others are not"),
		onDocker("O14", "TestHTTPProbe", "/endless", "http servers of many kinds", "they are asked", "200 to 399 succeed, headers and host are those given, a body is cut, time-outs fail"),
		onDocker("O15", "TestGRPCProbe", "NOT_SERVING", "grpc servers", "they are asked", "only SERVING succeeds"),
		onDocker("O16", "TestProbes", "exec fails", "commands", "they are run", "0 succeeds, everything else fails and says what was printed"),
		kubelet("O17", ofProbes, "a tcp port", "it is open, or closed", "open succeeds, closed fails"),
	}
}

func hooks() []row {
	return []row{
		kubelet("P1 P4", ofHooks, "exec hooks", "a pod starts and ends", "they run"),
		kubelet("P2 P5", ofHooks, "http hooks", "a pod starts and ends", "they run"),
		kubelet("P3 P6", ofHooks, "https hooks", "a pod starts and ends", "they run"),
		kubelet("P7", ofHooks, "a pre_stop that sleeps", "the pod ends", "it lasts that long"),
		kubelet("P8", ofHooks, "a pre_stop that sleeps", "the grace is smaller", "it is cut short"),
		kubelet("P9", ofHooks, "a pre_stop that sleeps", "the container ends", "the sleep ends"),
		kubelet("P10", ofHooks, "a pre_stop that sleeps for no time", "the pod ends", "it does not wait"),
		differs("P11", "a server without TLS", "it is asked by https", "that fails and says so",
			"What was meant to be encrypted is never sent in the clear.", nil).in(dockerEngine, "TestHTTPProbe", "server gave HTTP response to HTTPS client"),
		kubelet("P12", ofHooks, "a stop signal of its own", "the pod ends", "the container gets it"),
	}
}

func initContainers() []row {
	return []row{
		kubelet("Q1-Q2", ofInits, "two init containers", "the pod starts", "each ends before the next begins, and the mains wait for all"),
		kubelet("Q3", ofInits, "an init container that fails", "it is tried again and again", "the main has not begun"),
		none("Q4", "a member is meant to last: there is no restart policy under which a failed init container would end it"),
	}
}

func lifecycle() []row {
	const sandbox = "TestTheSandboxAsAKubeletHasIt"
	return []row{
		kubelet("R1", ofInits, "two init containers", "the pod starts", "they run one after the other"),
		kubelet("R2", ofInits, "two init containers", "the pod starts", "the mains wait for all"),
		kubelet("R3", ofInits, "a main with a post_start", "the pod starts", "init containers have ended before it"),
		kubelet("R4", ofLife, "two mains", "one fails", "it alone is restarted"),
		kubelet("R5", ofLife, "two mains", "the first one's post_start runs", "the second has not begun"),
		kubelet("R6", ofLife, "a post_start that fails", "the container starts", "it is killed and restarted"),
		kubelet("R7", ofInits, "a pod that began", "its main ends again and again", "its init container does not run again"),
		kubelet("R8", ofLife, "a process that ignores its signal", "the pod ends", "it is killed when its grace is over"),
		kubelet("R9", ofLife, "a long pre_stop", "the pod ends", "its time counts against the grace"),
		kubelet("R10", ofLife, "a pre_stop", "startup gives up", "it runs before the kill"),
		kubelet("R11", ofLife, "a pre_stop", "liveness fails", "it runs before the kill"),
		kubelet("R12", ofLife, "a pre_stop that runs", "probes fail", "readiness is lost, and nothing is restarted"),
		kubelet("R13-R14", ofInits, "an init container that ended, or runs", "its image is another one in a new rendering", "it is not run again"),
		kubelet("R15", ofLife, "a pod that ends", "another rendering is handed over", "nothing begins again"),
		kubelet("R16", sandbox, "a pod of all kinds of containers", "the host boots, or its sandbox ends", "everything runs in order again"),
		kubelet("R17-R18", ofInits, "init containers that ended", "stsd restarts, though they may be cleared away", "they do not run again"),
		kubelet("R19", ofLife, "a sidecar before an init container", "the pod starts", "the sidecar runs before it"),
		kubelet("R20", ofLife, "a sidecar with a startup probe", "the pod starts", "the next waits until it has started"),
		kubelet("R21", ofLife, "a sidecar that exits", "mains have begun or not", "it is restarted"),
		kubelet("R22", ofLife, "a failing init container beside a sidecar", "it is tried again", "the pod goes on initializing"),
		kubelet("R23", ofLife, "mains and sidecars", "the pod ends", "mains end first, then sidecars in reverse order"),
		kubelet("R24", ofLife, "a pre_stop that hangs", "the pod ends", "sidecars end within the grace too"),
		kubelet("R25", ofInits, "a pod that initializes", "it ends", "nothing hangs, and nothing else begins"),
		kubelet("R26", ofLife, "a sidecar that ends with an error", "the pod ends", "it has stopped as if it had not"),
		kubelet("R27", ofLife, "a main that exceeds its grace", "the pod ends", "it is killed, which is noted"),
		none("R28", "another image is another template: the member is made anew in its turn"),
		kubelet("R29", ofLife, "pods of every kind of probe", "stsd restarts", "ready and started stay as they were"),
		none("R30", "a member is meant to last: whatever its exit code, it is restarted with back-off"),
	}
}

func environment() []row {
	ofMember := func(id, expr, what string) row {
		return is(id, what, "a member is rendered", "the expression gives it", nil).in("jobspecs/hcl", "TestSelfAndSetAreWhatTheSpecSays", expr)
	}
	valued := func(id, what, lines string, of func(jobspecs.Container) string, want ...string) row {
		return is(id, what, "two members are rendered", "each has the value that it means there", renders(block("web", "replicas = 2\n"+lines), of, want...))
	}
	return []row{
		ofMember("S1", "self.ip", "name, namespace and address of the member"),
		ofMember("S2", "self.host_ip", "the host's address"),
		none("S3-S4", "limits stand in the file itself: a local is used in both places"),
		none("S5", "a member is known by its name for life: it has no other id"),
		none("S6", "Docker has no huge pages per container"),
		valued("S7", "a variable of env that is made of another value", "locals {\nbase = \"/data\"\ndir = \"${local.base}/db\"\n}\n"+box("env = {\nDIR = local.dir\n}"), func(c jobspecs.Container) string { return c.Env["DIR"] }, "/data/db", "/data/db"),
		valued("S8", "a value in the command", box(`command = ["db", "--name=${self.name}"]`), func(c jobspecs.Container) string { return strings.Join(c.Command, " ") }, "db --name=web-0", "db --name=web-1"),
		valued("S9", "a value in the arguments", box(`args = ["--peers=${join(",", set.peers[*].name)}"]`), func(c jobspecs.Container) string { return strings.Join(c.Args, " ") }, "--peers=web-1", "--peers=web-0"),
		valued("S10", "a value in sub_path", "volume \"data\" {\n}\n"+box("mount \"data\" {\npath = \"/data\"\nsub_path = self.name\n}"), func(c jobspecs.Container) string { return c.Mounts[0].SubPath }, "web-0", "web-1"),
		is("S11", "a sub_path that leaves its volume", "the file is read", "it is refused", func(t *testing.T) {
			for _, path := range []string{"/etc", "../other", "a/../../b"} {
				if f, ds := parse(block("web", "volume \"data\" {\n}\n"+box("mount \"data\" {\npath = \"/data\"\nsub_path = \""+path+"\"\n}"))); f != nil || len(ds) == 0 {
					t.Errorf("sub_path %q is taken", path)
				}
			}
		}),
		is("S12", "a sub_path that names the number of members", "the set grows", "containers that run keep theirs, and are told as stale; fresh ones have the new one", story(func(s *stage) {
			file := func(replicas int) string {
				return strings.Replace(hcl(fmt.Sprintf("replicas=%d", replicas)), "path = \"/data\"", "path = \"/data\"\nsub_path = \"of-${set.replicas}\"", 1)
			}
			s.applyText(file(2))
			s.rest()
			before := s.runs()
			s.applyText(file(3))
			s.rest()
			s.untouched(before, "web-0", "web-1")
			if old, fresh := s.member(0), s.member(2); !old.Stale || fresh.Stale {
				s.Errorf("stale: web-0 %v, web-2 %v", old.Stale, fresh.Stale)
			}
		})),
		differs("S13", "names of env", "the file is read", "printable ASCII is taken, an equals sign and an empty name are not",
			"Docker would cut the name at the sign.", func(t *testing.T) {
				for name, want := range map[string]bool{"A-b.c!d~": true, "A=B": false, "": false} {
					if f, _ := parse(block("web", box("env = {\n\""+name+"\" = \"x\"\n}"))); (f != nil) != want {
						t.Errorf("env %q is taken: %v", name, f != nil)
					}
				}
			}),
		none("S14", "Docker has no termination message; the last lines are in `stsd logs --previous`, exit code and signal in `stsd explain`"),
		kubelet("S15", ofGiven, "configuration and secrets as files", "a pod starts", "they are there, the sensitive ones in memory alone, and come again with a fresh container"),
		kubelet("S16", ofGiven, "images that are unknown, broken or private", "a pod starts", "it says which, and runs once it may"),
		none("S17", "what a container was given stays as it is until its next start; `stsd ps` shows whose is stale"),
	}
}

func names() []row {
	return []row{
		onDocker("T1", "TestMemberFindsItsNamesAndResolver", "names", "a member", "it looks into its hosts file", "its own address stands there with its long and its short name"),
		is("T2", "a set with named members", "a member's name is asked", "it answers with its address, and the address with its name", nil).in("dns", "TestCases", "a member's long name"),
		is("T3", "a set with another service", "members are listed", "each is HOST.SERVICE.NAMESPACE.svc.DOMAIN", func(t *testing.T) {
			if got := jobspecs.FQDN("web-0", "nodes", "prod", "cluster.local"); got != "web-0.nodes.prod.svc.cluster.local" {
				t.Errorf("name = %s", got)
			}
		}),
		onDocker("T4", "TestMemberFindsItsNamesAndResolver", "nsearch", "a member", "it looks into its resolver file", "search list and ndots are Kubernetes'"),
		is("T5", "named ports", "SRV of a set is asked", "each target has an address beside it", nil).in("dns", "TestSRVTargetsResolveToTheirGlue", "TypeSRV"),
		none("T6", "a member's resolver is stsd's, which forwards as the daemon's --dns-forward says: there is nothing to set per member"),
		none("T7", "no member is on the host's network (I3)"),
		taken("T8", "a service whose name begins with a digit", set(`service = "1st"`)),
	}
}

func security() []row {
	const full = "TestEveryFieldReachesTheContainer"
	return []row{
		onDocker("U1", full, "1000:1001", "a user and group by number", "the container runs", "its process has them"),
		kubelet("U2", ofGiven, "run_as_non_root", "the user is root, or may be", "it does not start, and says so"),
		kubelet("U3", ofGiven, "run_as_non_root and no user", "the image names one", "that one counts"),
		onDocker("U4", "TestFilesOfAReadOnlyRoot", "was written in a read-only root", "read_only_root", "the container runs", "only its mounts can be written"),
		onDocker("U5", "TestPrivilegedContainer", "Privileged", "privileged", "the container runs", "it sees the host's devices"),
		onDocker("U6", full, "NoNewPrivs: 1", "no_new_privileges", "the container runs", "its process cannot gain any"),
		kubelet("U7", ofGiven, "fs_group and a fresh volume", "the pod starts", "the first container prepares it, and no later one"),
		none("U8", "user namespaces are a setting of the whole Docker daemon (userns-remap)"),
	}
}
