package jobspecs

import "testing"

func TestWhatIsKeptOnTopOfTheFile(t *testing.T) {
	t.Parallel()
	four := 4
	for want, o := range map[string]Overrides{
		"": {Restarted: "2026-01-02T15:04:05Z"},
		"kept on top of the file: replicas = 4; applying a changed file drops it":                                                             {Replicas: &four},
		"kept on top of the file: replicas = 4, container.b.image = \"x:2\", container.w.image = \"w:2\"; applying a changed file drops them": {Replicas: &four, Images: map[string]string{"w": "w:2", "b": "x:2"}},
		"kept on top of the file: the template of web-1 (rolled back); applying a changed file drops it":                                      {Undo: "web-1"},
		"kept on top of the file: replicas = 4, the template of web-1 (rolled back) with container.b.image = \"x:2\" and container.w.image = \"w:2\"; applying a changed file drops them": {
			Replicas: &four, Undo: "web-1", Images: map[string]string{"w": "w:2", "b": "x:2"},
		},
	} {
		if got := o.Kept(); got != want {
			t.Errorf("%+v: %q, want %q", o, got, want)
		}
	}
}
