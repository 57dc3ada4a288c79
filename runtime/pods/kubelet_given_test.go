package pods_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
)

func TestWhatAPodIsGivenAsAKubeletHasIt(t *testing.T) {
	auth := func(c *jobspecs.Container) {
		c.Auth = &jobspecs.RegistryAuth{Username: "ci", Password: "secret"}
	}
	nonRoot := func(user string) func(*jobspecs.Container) {
		return func(c *jobspecs.Container) { c.RunAsNonRoot, c.User = true, user }
	}
	fails := func(s jobspecs.PodSpec, reason string) func(*rig) {
		return func(r *rig) {
			r.create(s)
			r.after(time.Minute)
			r.want("Failed (" + reason + ")")
			if r.pod().Message == "" {
				r.Error("it does not say why")
			}
		}
	}
	works := func(s jobspecs.PodSpec) func(*rig) {
		return func(r *rig) {
			r.create(s)
			r.after(time.Minute)
			r.want("Running ready")
		}
	}
	private := programs{"web": {Remote: true, Password: "secret"}, "side": {Remote: true, Password: "secret"}}
	broken := programs{"web": {Remote: true, PullError: &pods.Problem{Reason: runtime.ReasonPullFailed, Message: "no route to the registry"}}}
	playAll(t, []scenario{
		{"S16", "given an image that the registry does not know, when the pod starts, then it says so", nil,
			fails(pod(mainc("web", func(c *jobspecs.Container) { c.Image = "typo" })), runtime.ReasonImageUnknown)},
		{"S16", "given a registry that is broken, when the pod starts, then it says so", broken, fails(pod(mainc("web")), runtime.ReasonPullFailed)},
		{"S16", "given a private registry, when there are no credentials, then it says so", private, fails(pod(mainc("web")), runtime.ReasonAccessDenied)},
		{"S16", "given a private registry, when there are credentials, then it runs", private, works(pod(side("side", auth), mainc("web", auth)))},
		{"S16", "given a private registry, when one container lacks credentials, then the pod says so", private, fails(pod(side("side"), mainc("web", auth)), runtime.ReasonAccessDenied)},
		{"U2", "given run_as_non_root, when the user is root, then it does not start", nil, fails(pod(mainc("web", nonRoot("0"))), runtime.ReasonRunsAsRoot)},
		{"U2", "given run_as_non_root, when the user is another one, then it starts", nil, works(pod(mainc("web", nonRoot("999"))))},
		{"U3", "given run_as_non_root, when the image's user is root, then it does not start", nil, fails(pod(mainc("web", nonRoot(""))), runtime.ReasonRunsAsRoot)},
		{"U3", "given run_as_non_root, when the image's user is another one, then it starts", programs{"web": {User: "999"}}, works(pod(mainc("web", nonRoot(""))))},
		{"U7", "given a fresh volume that two containers mount, when the pod starts, then the first one prepares it, and no later one", nil, func(r *rig) {
			s := pod(side("side"), mainc("web"), mainc("db"))
			for i := range s.Containers {
				s.Containers[i].Mounts = []jobspecs.Mount{{Kind: jobspecs.MountVolume, Claim: "data", Volume: "data-web-0", Path: "/data"}}
			}
			s.Volumes = []jobspecs.VolumeSpec{{Claim: "data", Name: "data-web-0", Fresh: true}}
			r.create(s)
			r.world.Kill("web-0_side")
			r.world.Kill("web-0")
			r.after(time.Minute)
			if d, _ := r.world.Disk("data-web-0"); !slices.Equal(d.Prepared, []string{"web-0_side"}) {
				r.Errorf("prepared by %v, want the sidecar alone", d.Prepared)
			}
		}},
		{"S15", "given a sensitive file, when there is no folder in memory, then the pod says so", nil, func(r *rig) {
			r.world.NoMemoryFolder(true)
			r.create(pod(mainc("web", func(c *jobspecs.Container) { c.Files = []jobspecs.File{{Path: "/key", Sensitive: true}} })))
			r.want("Failed (NoMemoryFolder)")
			r.world.NoMemoryFolder(false)
			r.after(time.Minute)
			r.want("Running ready")
		}},
		{"S15", "given a sensitive file, when /run is emptied, then the pod runs on, and a fresh container has it again", nil, func(r *rig) {
			r.create(pod(mainc("web", func(c *jobspecs.Container) { c.Files = []jobspecs.File{{Path: "/key", Sensitive: true}} })))
			r.world.EmptyRun()
			r.after(time.Minute)
			r.want("Running ready")
			r.world.Kill("web-0")
			r.after(time.Minute)
			r.want("Running ready restarts=1")
		}},
	})
}
