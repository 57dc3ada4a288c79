package hcl

import (
	"slices"
	"strings"
	"testing"

	"github.com/stsd/stsd/jobspecs"
)

// What does not depend on a missing value is checked without it, and all in one round.
func TestAMissingValueHidesNoOtherProblem(t *testing.T) {
	const text = `
variable "s" {
  sensitive = true
}
variable "size" {}
variable "grace" {}
statefulset "web" {
  termination_grace = var.grace
  volume "data" {}
  volume "logs" {}
  container "web" {
    image = "web:1"
    env   = { A = var.s, B = "${self.name}-${var.size}" }
    mount "data" {
      path = "/data"
    }
    mount "logs" {
      path = "/data/logs"
    }
    file "/etc/pw" {
      content = "pw=${var.s}-${self.name}"
    }
    resources {
      memory             = "1GiB"
      memory_reservation = "2GiB"
      shm_size           = var.size
    }
    probe "readiness" {
      tcp {
        port = "nope"
      }
    }
    probe "liveness" {
      http {
        port = "neither"
      }
    }
    lifecycle {
      pre_stop {
        sleep {
          duration = "1m"
        }
      }
    }
  }
}`
	_, found := Parse([]jobspecs.Source{{Name: "web.hcl", Text: []byte(text)}}, jobspecs.Inputs{}, Options{AllowMissing: true})
	var got []string
	for _, d := range found {
		if d.Severity == severityError {
			got = append(got, d.Summary)
		}
	}
	slices.Sort(got)
	want := []string{
		"memory_reservation 2GiB is more than memory 1GiB",
		`mount paths overlap: /data/logs of "logs" and /data of "data"`,
		`there is no port "neither" in this container`,
		`there is no port "nope" in this container`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("found %q\nwant  %q", got, want)
	}
}

func TestWhatIsNotKnownIsNoProblem(t *testing.T) {
	for about, lines := range map[string]string{
		"a path":           "mount \"data\" { path = var.x }\nmount \"logs\" { path = \"/logs\" }",
		"numbers of ports": "port \"a\" { container = var.x }\nport \"b\" { container = var.x }",
		"a probe's port":   "probe \"readiness\" {\n tcp { port = var.x }\n}",
		"memory":           "resources {\n memory = var.x\n memory_reservation = \"1GiB\"\n}",
		"an image":         "",
	} {
		text := "variable \"x\" {}\nstatefulset \"web\" {\n termination_grace = var.x\n volume \"data\" {}\n volume \"logs\" {}\n container \"web\" {\n image = var.x\n" + lines +
			"\nlifecycle {\n pre_stop {\n sleep { duration = \"1m\" }\n }\n}\n}\n}"
		_, found := Parse([]jobspecs.Source{{Name: "web.hcl", Text: []byte(text)}}, jobspecs.Inputs{}, Options{AllowMissing: true})
		for _, d := range found {
			if !strings.Contains(d.Summary, "is never mounted") {
				t.Errorf("%s: found %q", about, d.Summary)
			}
		}
	}
}

func TestASleepLongerThanTheGraceIsSaidWhateverElseIsMissing(t *testing.T) {
	const text = `
variable "x" {}
statefulset "web" {
  termination_grace = "10s"
  container "web" {
    image = var.x
    lifecycle {
      pre_stop {
        sleep {
          duration = "1m"
        }
      }
    }
  }
}`
	_, found := Parse([]jobspecs.Source{{Name: "web.hcl", Text: []byte(text)}}, jobspecs.Inputs{}, Options{AllowMissing: true})
	if said := reportOf(found); !strings.Contains(said, "a sleep of 1m is longer than termination_grace, 10s") {
		t.Errorf("found %q", said)
	}
}

func TestScrubPutsOneMarkForWhatTouches(t *testing.T) {
	for text, want := range map[string]string{
		"a hunter2secret b":             "a (sensitive) b",
		"hunter2 and c2VjcmV0":          "(sensitive) and (sensitive)", // secret, in base64
		"nothing":                       "nothing",
		"a-very-long-passphrase-indeed": "(sensitive)",
		"a-very-long-passphr…":          "(sensitive)…",
		"…ong-passphrase-indeed.":       "…(sensitive).",
	} {
		if got := Scrub(text, Disguises([]string{"hunter2", "secret", "abc", "a-very-long-passphrase-indeed"})); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestInputsThatAreSensitive(t *testing.T) {
	in := hidingInputs()
	text := hiding("") + "\nvariable \"deep\" {\n sensitive = true\n default = { a = [\"in-a-list\", 123456], b = { c = \"in-a-map\" } }\n}\nvariable \"plain\" {\n default = \"not-hidden\"\n}"
	got := SensitiveInputs([]jobspecs.Source{{Name: "web.hcl", Text: []byte(text)}}, in)
	for _, want := range []string{passphrase, cookie, "in-a-list", "123456", "in-a-map"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
	if slices.Contains(got, "not-hidden") {
		t.Errorf("%q holds what is not sensitive", got)
	}
	if got := SensitiveInputs([]jobspecs.Source{{Name: "web.hcl", Text: []byte("{")}}, in); !slices.Contains(got, passphrase) {
		t.Errorf("of a source that cannot be read: %q", got)
	}
}
