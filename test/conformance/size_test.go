package conformance

import (
	"fmt"
	"strings"
	"time"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
)

const gib = 1 << 30

// claimed is the file of a set whose claim "data" has these attributes.
func claimed(opts string, attributes ...string) string {
	return strings.Replace(hcl(opts), "volume \"data\" {", "volume \"data\" {\n"+strings.Join(attributes, "\n"), 1)
}

// sizes are the volumes with what is shown of their size: "data-web-0 1GiB of 2GiB".
func (s *stage) sizes() string {
	s.Helper()
	var out []string
	for _, v := range s.status().Volumes {
		used := "?"
		if v.Used != nil {
			used = jobspecs.FormatSize(*v.Used)
		}
		out = append(out, fmt.Sprintf("%s %s of %s", v.Name, used, jobspecs.FormatSize(v.Size)))
	}
	return strings.Join(out, ", ")
}

// outlasting are the members of whose volumes it is said that they are not what
// their claim says now.
func (s *stage) outlasting() string {
	s.Helper()
	var out []string
	for _, v := range s.status().Volumes {
		if strings.Contains(v.Message, "it stays so; stsd replace") {
			out = append(out, jobspecs.MemberName("web", v.Ordinal))
		}
	}
	return strings.Join(out, ",")
}

// warnings are those of a plan, one a line.
func (s *stage) warnings(text string) string {
	s.Helper()
	p, err := s.Plan(s.Context(), request(text, sure))
	if err != nil {
		s.Fatal(err)
	}
	return strings.Join(p.Plans[0].Warnings, "\n")
}

// growing changes the size of the claim of a set that runs, and the image too.
func growing(image string) func(*stage) {
	return func(s *stage) {
		s.applyText(claimed("", `size = "1GiB"`))
		s.rest()
		s.world.Fill("data-web-1", gib-gib/20)
		s.pass(2 * time.Minute)
		s.want("web-1", s.member(1).Reason, "VolumeNearlyFull")
		before := s.runs()
		s.applyText(claimed("image="+image, `size = "2GiB"`))
		s.pass(time.Second)
		s.want("sizes", s.sizes(), "data-web-0 0B of 2GiB, data-web-1 972.8MiB of 2GiB, data-web-2 0B of 2GiB")
		s.want("web-1", s.member(1).Reason, "")
		s.rest()
		if image == "app:1" {
			s.untouched(before, "web-0", "web-1", "web-2")
		}
		s.want("host", s.host(), strings.ReplaceAll(containers(3, 3), "app:1", image))
		s.want("outlasting", s.outlasting(), "")
		for i, m := range s.status().Members {
			if m.Stale {
				s.Errorf("web-%d is stale: its next start changes nothing of its volume", i)
			}
		}
	}
}

func sizeChanges() []row {
	quota := func(opts, size string) string {
		return claimed(opts, `driver = "quota"`, fmt.Sprintf("size = %q", size))
	}
	two := func(size string) string {
		text := strings.Replace(hcl("claim=data:retain:retain,log:retain:retain"), "volume \"data\" {", fmt.Sprintf("volume \"data\" {\nsize = %q", size), 1)
		return strings.Replace(text, "volume \"log\" {", fmt.Sprintf("volume \"log\" {\ndriver = \"quota\"\nsize = %q", size), 1)
	}
	return []row{
		differs("V38-V43", "claims with a size, of a driver without quota, of one that was told it, or one of each", "the size grows, alone or with the image",
			"a limit that is watched counts at once and restarts nobody; what a driver was told stays with each volume, which is said with the command that makes one anew; the image goes by its turn, and nothing is blocked",
			"A size that cannot be enforced needs nobody to move; one that can is never a reason to stand still.", all(
				story(growing("app:1")), story(growing("app:2")),
				story(func(s *stage) {
					s.applyText(quota("", "1GiB"))
					s.rest()
					before := s.runs()
					s.has("plan", s.warnings(quota("", "2GiB")), `volume "data" of web-0, web-1, web-2 was made with size 1GiB, not 2GiB and stays so`)
					s.applyText(quota("image=app:2 replicas=4", "2GiB"))
					s.rest()
					s.want("sizes", s.sizes(), "data-web-0 0B of 1GiB, data-web-1 0B of 1GiB, data-web-2 0B of 1GiB, data-web-3 0B of 2GiB")
					s.want("outlasting", s.outlasting(), "web-0,web-1,web-2")
					for m, id := range s.runs() {
						if id == before[m] {
							s.Errorf("%s has the old image", m)
						}
					}
				}),
				story(func(s *stage) {
					s.applyText(two("1GiB"))
					s.rest()
					before := s.runs()
					s.applyText(two("2GiB"))
					s.rest()
					s.untouched(before, "web-0", "web-1", "web-2")
					s.has("sizes", s.sizes(), "data-web-0 0B of 2GiB, log-web-0 0B of 1GiB")
				}))),
		is("V46", "an image and a size that changed", "it is undone", "the former image runs again; the size stays, as it is no part of the template", story(func(s *stage) {
			s.applyText(claimed("", `size = "1GiB"`))
			s.rest()
			s.applyText(claimed("image=app:2", `size = "2GiB"`))
			s.rest()
			s.rollout("undo", 0)
			s.rest()
			s.want("host", s.host(), containers(3, 3))
			s.has("sizes", s.sizes(), "data-web-0 0B of 2GiB")
		})),
		differs("V47", "volumes whose driver was told a size that has grown since", "one is given up, or its ordinal goes with on_scale_down \"delete\" and comes back", "the one that is made anew has the new size, the others keep theirs",
			"There is one way only: what is there is left alone, what is made is made as the file says.", story(func(s *stage) {
				deleting := func(opts, size string) string { return quota("claim=data:delete:retain "+opts, size) }
				s.applyText(deleting("", "1GiB"))
				s.rest()
				s.applyText(deleting("", "2GiB"))
				s.rest()
				s.asked(s.FreshVolume(s.Context(), web, client.FreshVolumeRequest{Ordinal: 1, Write: sure}))
				s.pass(time.Second)
				s.rest()
				s.scale(2)
				s.rest()
				s.scale(3)
				s.rest()
				s.want("sizes", s.sizes(), "data-web-0 0B of 1GiB, data-web-1 0B of 2GiB, data-web-2 0B of 2GiB")
				s.want("outlasting", s.outlasting(), "web-0")
			})),
	}
}

// claimGrowth is the complaint that claims cannot grow.
func claimGrowth() row {
	return differs("6.2", "a claim with a size", "its volumes fill up, and the size grows, shrinks or goes",
		"above 90 % and above its size each is told once, with the member; a new size counts at once; a plan names what holds more than it shall; without a size nothing is measured",
		"Claims are no dead end, and that a volume is full is known before the disk is.", story(func(s *stage) {
			s.applyText(claimed("", `size = "1GiB"`))
			s.rest()
			s.world.Fill("data-web-1", gib*92/100)
			s.pass(3 * time.Minute)
			s.want("events", s.told("VolumeNearlyFull"), "web-1: volume data-web-1 is above 90% of its size 1GiB")
			s.has("web-1", s.member(1).Message, "volume data-web-1 holds 942.1MiB, 92% of its size 1GiB")
			if c := condition(s.status(), jobspecs.CondDegraded); c.Status {
				s.Errorf("condition = %+v: there is room", c)
			}
			s.world.Fill("data-web-1", gib*3/2)
			s.pass(3 * time.Minute)
			s.want("events", s.told("VolumeOverSize"), "web-1: volume data-web-1 is above its size 1GiB")
			if c := condition(s.status(), jobspecs.CondDegraded); !c.Status || c.Message != "volume data-web-1 holds 1.5GiB, more than its size 1GiB" {
				s.Errorf("condition = %+v", c)
			}
			e, err := s.Explain(s.Context(), "default", "web-1")
			if err != nil {
				s.Fatal(err)
			}
			s.has("explain", strings.Join(e.Because, "; "), "volume data-web-1 holds 1.5GiB, more than its size 1GiB")
			s.has("explain", strings.Join(e.Next, "; "), "stsd apply FILE, with a larger size")

			s.applyText(claimed("", `size = "4GiB"`))
			s.pass(time.Second)
			s.want("web-1", s.member(1).Reason, "")
			s.has("plan", s.warnings(claimed("", `size = "512MiB"`)), `volume "data": its size shrinks from 4GiB to 512MiB; no volume that is there is made smaller`)
			s.has("plan", s.warnings(claimed("", `size = "512MiB"`)), "volume data-web-1 holds 1.5GiB, more than its size 512MiB would be")
			s.applyText(hcl(""))
			s.pass(3 * time.Minute)
			s.want("sizes", s.sizes(), "data-web-0 ? of 0B, data-web-1 ? of 0B, data-web-2 ? of 0B")
			s.has("plan", s.warnings(claimed("", `size = "512MiB"`)), "volume data-web-1 holds 1.5GiB, more than its size 512MiB would be")
		}))
}
