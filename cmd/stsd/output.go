package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/template"
	"time"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// format is how stdout shows a document.
type format struct {
	kind     string // "table", "wide", "json", "yaml", "name", "go-template"
	template *template.Template
}

func (f format) wide() bool  { return f.kind == "wide" }
func (f format) table() bool { return f.kind == "table" || f.kind == "wide" }

// parseFormat reads -o and --format, which mean the same.
func parseFormat(output, other string) (format, error) {
	if output != "" && other != "" && output != other {
		return format{}, usagef("-o %s and --format %s contradict each other", output, other)
	}
	s := output + other
	if output == other {
		s = output
	}
	if strings.Contains(s, "{{") && !strings.HasPrefix(s, "go-template=") {
		s = "go-template=" + s // docker's way to write it
	}
	switch kind, text, _ := strings.Cut(s, "="); kind {
	case "":
		return format{kind: "table"}, nil
	case "table", "wide", "json", "yaml", "name":
		return format{kind: kind}, nil
	case "go-template":
		t, err := template.New("-o").Parse(text)
		if err != nil {
			return format{}, usagef("-o go-template: %w", err)
		}
		return format{kind: kind, template: t}, nil
	}
	return format{}, usagef("-o %q: want table, wide, json, yaml, name or go-template=…", s)
}

// view is one document and the ways to show it.
type view struct {
	doc   any
	names []string        // for -o name; nil: it has none
	table func(io.Writer) // for people
}

func (a *app) show(v view) error {
	kind := a.format.kind
	if a.quiet && a.format.table() && v.names != nil {
		kind = "name"
	}
	switch kind {
	case "json":
		return writeJSON(a.stdout, v.doc)
	case "yaml":
		return writeYAML(a.stdout, v.doc)
	case "go-template":
		return writeTemplate(a.stdout, a.format.template, v.doc)
	case "name":
		if v.names == nil {
			return usagef("-o name: this has no names")
		}
		for _, n := range v.names {
			fmt.Fprintln(a.stdout, n)
		}
		return nil
	}
	v.table(a.stdout)
	return nil
}

func writeJSON(w io.Writer, doc any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(doc)
}

func writeYAML(w io.Writer, doc any) error {
	b, err := yaml.Marshal(doc)
	if err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}
	_, err = w.Write(b)
	return err
}

// writeTemplate runs a template over the JSON form, as kubectl does.
func writeTemplate(w io.Writer, t *template.Template, doc any) error {
	b, err := json.Marshal(doc)
	if err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	if err := t.Execute(w, numbers(v)); err != nil {
		return usagef("-o go-template: %w", err)
	}
	return nil
}

// numbers makes integers int64, so that a template can compare and print them.
func numbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64() // it was one
		return f
	}
	return v
}

// table is rows of cells, without boxes.
type table struct {
	indent string
	rows   [][]string
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// gap is what stands between two columns, in spaces.
const gap = 3

func (t *table) write(w io.Writer) {
	for _, r := range aligned(t.rows) {
		fmt.Fprintln(w, t.indent+r)
	}
}

// aligned pads all cells but the last of each row.
func aligned(rows [][]string) []string {
	var width []int
	for _, r := range rows {
		for i, cell := range r {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	var out []string
	for _, r := range rows {
		var b strings.Builder
		for i, cell := range r {
			b.WriteString(cell)
			b.WriteString(strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell)+gap))
		}
		out = append(out, strings.TrimRight(b.String(), " "))
	}
	return out
}

// age is how long ago t was: "45s", "2m", "3h", "5d"; "-" for never.
func (a *app) age(t *time.Time) string {
	if t == nil || t.IsZero() {
		return "-"
	}
	return short(a.now().Sub(*t))
}

// short is a duration in its largest unit.
func short(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}

// count is "1 member", "3 members".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// orDash is s, or "-" in a table.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
