package hcl

import (
	"testing"

	"github.com/stsd/stsd/jobspecs"
)

func TestImagesThatStandInThePlaceOfOthersAreShown(t *testing.T) {
	const written = `variable "image" {
  type = string
}

statefulset "web" {
  init "prepare" {
    image = "tool:1" # as it was
  }

  container "web" { image = var.image }

  sidecar "old" {
    image = <<-END
      old:1
    END
  }
}

statefulset "db" {
  container "web" {
    image = "db:1"
  }
}
`
	const want = `variable "image" {
  type = string
}

statefulset "web" {
  init "prepare" {
    image = "tool:2" /* set image; the file says "tool:1" */ # as it was
  }

  container "web" { image = "web:2" /* set image; the file says var.image */ }

  sidecar "old" {
    image = "old:2" /* set image; the file says another one */
  }
}

statefulset "db" {
  container "web" {
    image = "db:1"
  }
}
`
	images := map[string]string{"prepare": "tool:2", "web": "web:2", "old": "old:2", "gone": "gone:2"}
	got := WithImagesShown([]jobspecs.Source{{Name: "web.hcl", Text: []byte(written)}}, "web", images)
	if len(got) != 1 || string(got[0].Text) != want {
		t.Errorf("shown:\n%s\nwant:\n%s", got[0].Text, want)
	}
	f, ds := Parse(got, jobspecs.Inputs{}, Options{AllowMissing: true})
	if HasErrors(ds) {
		t.Fatalf("what is shown cannot be read: %v", ds)
	}
	for _, i := range Images(f.Specs[0].Template) {
		if i.Ref != images[i.Container] {
			t.Errorf("image of %s = %s, want %s", i.Container, i.Ref, images[i.Container])
		}
	}
}
