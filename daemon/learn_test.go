package daemon

import (
	"reflect"
	"testing"
	"time"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/jobspecs/hcl"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/volumes"
)

func TestTheImagesOfAllContainersArePinnedOnce(t *testing.T) {
	s := sight{view: store.View{Revisions: []jobspecs.Revision{{Name: "web-a"}, {Name: "web-b", ImageIDs: map[string]string{"exporter:1": "sha256:old"}}}}}
	pod := func(id string) *runtime.Pod {
		return &runtime.Pod{Revision: "web-b", Image: "web:1", ImageID: "sha256:web" + id, Containers: []runtime.Container{
			{Name: "prepare", Image: "prepare:1", ImageID: "sha256:prepare" + id},
			{Name: "exporter", Image: "exporter:1", ImageID: "sha256:exporter" + id},
			{Name: "web", Image: "web:1", ImageID: "sha256:web" + id},
			{Name: "late", Image: "late:1"}, // not resolved yet
		}}
	}
	var f store.Facts
	var l loop
	l.learnImages(&f, &s, pod(""))
	l.learnImages(&f, &s, pod("2"))
	want := map[string]map[string]string{"web-b": {"web:1": "sha256:web", "prepare:1": "sha256:prepare"}}
	if !reflect.DeepEqual(f.ImageIDs, want) {
		t.Errorf("pinned = %v, want %v", f.ImageIDs, want)
	}
}

func TestAPodWhoseInitContainerRanHasUsedItsVolumes(t *testing.T) {
	for _, c := range []struct {
		name string
		pod  runtime.Pod
		want bool
	}{
		{"nothing was made", runtime.Pod{Containers: []runtime.Container{{State: "waiting"}}}, false},
		{"its main container runs", runtime.Pod{StartedAt: noon}, true},
		{"an init container runs", runtime.Pod{Containers: []runtime.Container{{State: "running", StartedAt: noon}, {State: "waiting"}}}, true},
		{"an init container ended", runtime.Pod{Containers: []runtime.Container{{State: "exited", ExitCode: code(1)}}}, true},
	} {
		if got := hasRun(&c.pod); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestAVolumeIsFreshUntilAContainerHasRunWithIt(t *testing.T) {
	kept := planner.Rendered{Spec: jobspecs.PodSpec{Volumes: []jobspecs.VolumeSpec{{Name: "data-web-0"}, {Name: "logs-web-0"}, {Name: "old-web-0"}}}}
	records := map[string]volumes.Record{"data-web-0": {}, "logs-web-0": {Used: true}}
	got := freshVolumes(kept, records).Spec.Volumes
	want := []jobspecs.VolumeSpec{{Name: "data-web-0", Fresh: true}, {Name: "logs-web-0"}, {Name: "old-web-0"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("volumes = %+v, want %+v", got, want)
	}
	if kept.Spec.Volumes[0].Fresh {
		t.Error("the rendering that is kept was changed")
	}
}

func TestARolloutThatRestartsIsToldFromAnUpdate(t *testing.T) {
	template := func(image string) jobspecs.Template { return jobspecs.Template(`{"image":"` + image + `"}`) }
	stamped := func(t jobspecs.Template) (jobspecs.Template, jobspecs.Origin) {
		at := noon.Format(time.RFC3339)
		return hcl.WithRestart(t, at), jobspecs.Origin{Restarted: at}
	}
	v := store.View{Record: store.Record{Update: "new"}, Revisions: []jobspecs.Revision{
		{Name: "older", Template: template("web:0")}, {Name: "old", Template: template("web:1")}, {Name: "new"},
	}}
	v.Revisions[2].Template, v.Revisions[2].Origin = stamped(template("web:1"))
	got := again(&v, []runtime.Pod{{Revision: "older"}, {Revision: "old"}, {Revision: "new"}, {Revision: "forgotten"}})
	if want := map[string]bool{"older": false, "old": true}; !reflect.DeepEqual(got, want) {
		t.Errorf("again = %v, want %v", got, want)
	}
}
