package store

import (
	"reflect"
	"testing"

	"github.com/stsd/stsd/volumes"
)

func TestAForgottenSetIsKnownAgainByItsVolumes(t *testing.T) {
	data := volumes.Record{Name: "data-web-0", Claim: "data", Ordinal: 0, Used: true}
	gone := volumes.Record{Name: "data-web-1", Claim: "data", Ordinal: 1, Used: true}
	for _, c := range []struct {
		name    string
		formed  bool
		keep    []string
		records map[string]volumes.Record
		want    bool // formed
	}{
		{"its volumes went with it", true, nil, map[string]volumes.Record{}, false},
		{"a volume of it exists", true, []string{"data-web-0"}, map[string]volumes.Record{"data-web-0": data}, true},
		{"a volume of a set that was never formed exists", false, []string{"data-web-0"}, map[string]volumes.Record{"data-web-0": data}, false},
		{"all exist", true, []string{"data-web-0", "data-web-1"}, map[string]volumes.Record{"data-web-0": data, "data-web-1": gone}, true},
		{"one without a record exists", true, []string{"other-web-0"}, map[string]volumes.Record{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, t.TempDir())
			if err := s.Put(intent(web, 0)); err != nil {
				t.Fatal(err)
			}
			if err := s.Learn(web, Facts{Volumes: []volumes.Record{data, gone}, Formed: c.formed}); err != nil {
				t.Fatal(err)
			}
			if err := s.Delete(web, Kept{Volumes: c.keep}); err != nil {
				t.Fatal(err)
			}
			for name, r := range c.records {
				r.Former = true
				c.records[name] = r
			}
			records, formed, err := s.Former(web)
			if err != nil || formed != c.want || !reflect.DeepEqual(records, c.records) {
				t.Errorf("former = %v, formed %v, %v; want %v, %v", records, formed, err, c.records, c.want)
			}
			if err := s.Put(intent(web, 0)); err != nil { // applied again
				t.Fatal(err)
			}
			v, err := s.Look(web)
			if err != nil || v.Record.Formed != c.want || !reflect.DeepEqual(v.Volumes, c.records) {
				t.Errorf("applied again: %v, formed %v, %v; want %v, %v", v.Volumes, v.Record.Formed, err, c.records, c.want)
			}
		})
	}
}

func TestASetThatIsForgottenTwiceLeavesNothingOfTheFirst(t *testing.T) {
	s := open(t, t.TempDir())
	for _, keep := range [][]string{{"data-web-0"}, nil} {
		if err := s.Put(intent(web, 0)); err != nil {
			t.Fatal(err)
		}
		if err := s.Learn(web, Facts{Volumes: []volumes.Record{{Name: "data-web-0", Used: true}}, Formed: true}); err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(web, Kept{Volumes: keep}); err != nil {
			t.Fatal(err)
		}
	}
	if records, formed, err := s.Former(web); err != nil || formed || len(records) != 0 {
		t.Errorf("former = %v, formed %v, %v; want nothing", records, formed, err)
	}
}
