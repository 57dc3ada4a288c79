package hcl

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/stsd/stsd/jobspecs"
)

// Render gives one member its PodSpec: every expression its value, everything
// unwritten its default. The error names the member and the attribute.
func Render(set *jobspecs.Set, t jobspecs.Template, env Env) (jobspecs.PodSpec, error) {
	specs, err := RenderAll(set, t, env, []int{env.Ordinal})
	if err != nil {
		return jobspecs.PodSpec{}, err
	}
	return specs[0], nil
}

// RenderAll renders several members of one Env, whose Ordinal is not looked at:
// less work than one by one.
func RenderAll(set *jobspecs.Set, t jobspecs.Template, env Env, ordinals []int) ([]jobspecs.PodSpec, error) {
	r, err := newRenderer(set, t, env)
	if err != nil {
		return nil, fmt.Errorf("render %s: %w", set.Key(), err)
	}
	specs := make([]jobspecs.PodSpec, len(ordinals))
	for i, o := range ordinals {
		if specs[i], err = r.pod(o); err != nil {
			return nil, fmt.Errorf("render %s: %w", jobspecs.MemberName(set.Name, o), err)
		}
	}
	return specs, nil
}

// A renderer renders the members of one Env.
type renderer struct {
	view   view
	doc    document            // of the template
	claims map[string]document // of the set's claims
	parsed map[string]parsedExpression
	funcs  map[string]map[string]function.Function // by the path of the document
	meter  *meter
}

func newRenderer(set *jobspecs.Set, t jobspecs.Template, env Env) (*renderer, error) {
	r := &renderer{
		claims: map[string]document{}, parsed: map[string]parsedExpression{},
		funcs: map[string]map[string]function.Function{}, meter: newMeter(memberWork),
	}
	var err error
	if r.doc, err = decodeDocument(t); err != nil {
		return nil, err
	}
	for _, c := range set.Claims {
		if r.claims[c.Name], err = decodeDocument(c.Spec); err != nil {
			return nil, err
		}
	}
	r.view = newView(set, textOr(r.doc, "service", set.Name), env)
	return r, nil
}

// An attributeError is what is wrong with one attribute of a member.
type attributeError struct {
	path string // as in Diff
	err  error
}

func (e *attributeError) Error() string { return e.path + ": " + e.err.Error() }
func (e *attributeError) Unwrap() error { return e.err }

func (r *renderer) pod(ordinal int) (jobspecs.PodSpec, error) {
	v := r.view.of(ordinal)
	r.meter.left = memberWork
	pod, err := resolve[podDoc](r, v, r.doc, setSchema, "")
	if err != nil {
		return jobspecs.PodSpec{}, err
	}
	spec := v.podSpec(pod)
	if spec.Volumes, err = r.volumes(v); err != nil {
		return jobspecs.PodSpec{}, err
	}
	var wrong wrongs
	for _, p := range partsOf(r.doc) {
		c, errs := v.container(p, pod)
		wrong = append(wrong, errs...)
		spec.Containers = append(spec.Containers, c)
	}
	spec.Scratch = v.scratch(pod, spec.Containers)
	if len(wrong) > 0 {
		return spec, wrong
	}
	return spec, nil
}

// wrongs are what is wrong with attributes of a member's containers; the member is
// whole apart from them.
type wrongs []error

func (w wrongs) Error() string   { return errors.Join(w...).Error() }
func (w wrongs) Unwrap() []error { return w }

// The documents after every expression got its value: what a template holds, as
// Go types. Pointers and nil tell what was not written.
type (
	podDoc struct {
		Labels           map[string]string
		ExtraHosts       map[string]string `json:"extra_hosts"`
		Sysctls          map[string]string
		TerminationGrace *span `json:"termination_grace"`
		ShareProcesses   bool  `json:"share_processes"`
		Networks         []string
		Scratch          map[string]scratchDoc
		Bind             map[string]bindDoc
		Init             map[string]containerDoc
		Sidecar          map[string]containerDoc
		Container        map[string]containerDoc
	}
	containerDoc struct {
		Image      string
		Pull       string
		Command    []string
		Args       []string
		Env        map[string]string
		User       string
		WorkingDir string `json:"working_dir"`
		StopSignal string `json:"stop_signal"`
		Port       map[string]portDoc
		Mount      map[string][]mountDoc
		File       map[string]fileDoc
		Probe      map[string]probeDoc
		Lifecycle  struct {
			PostStart *handlerDoc `json:"post_start"`
			PreStop   *handlerDoc `json:"pre_stop"`
		}
		Restart   struct{ First, Initial, Max, Reset *span }
		Ulimits   map[string]string
		Resources struct {
			CPU               float64
			Memory            bytes64
			MemoryReservation bytes64 `json:"memory_reservation"`
			PIDs              int64
			ShmSize           bytes64 `json:"shm_size"`
			GPUs              string
		}
		Security struct {
			Privileged      bool
			ReadOnlyRoot    bool     `json:"read_only_root"`
			NoNewPrivileges bool     `json:"no_new_privileges"`
			RunAsNonRoot    bool     `json:"run_as_non_root"`
			FSGroup         *int     `json:"fs_group"`
			CapAdd          []string `json:"cap_add"`
			CapDrop         []string `json:"cap_drop"`
		}
		RegistryAuth *jobspecs.RegistryAuth `json:"registry_auth"`
		Log          *struct {
			Driver  string
			Options map[string]string
		}
	}
	portDoc struct {
		Container, Host int
		Protocol        string
		HostIP          string `json:"host_ip"`
	}
	mountDoc struct {
		Path     string
		SubPath  string `json:"sub_path"`
		ReadOnly bool   `json:"read_only"`
	}
	scratchDoc struct {
		Medium string
		Size   bytes64
	}
	bindDoc struct {
		Source   string
		ReadOnly bool `json:"read_only"`
	}
	httpDoc struct {
		Port         any
		Path, Scheme string
		Headers      map[string]string
	}
	handlerDoc struct {
		Exec  *struct{ Command []string }
		HTTP  *httpDoc
		Sleep *struct{ Duration *span }
	}
	fileDoc struct {
		Content, Mode, Owner string
		Sensitive            bool
	}
	probeDoc struct {
		Exec *struct{ Command []string }
		HTTP *httpDoc
		TCP  *struct{ Port any }
		GRPC *struct {
			Port    any
			Service string
		}
		Log              *struct{ Pattern string }
		InitialDelay     *span `json:"initial_delay"`
		Period           *span
		Timeout          *span
		SuccessThreshold int `json:"success_threshold"`
		FailureThreshold int `json:"failure_threshold"`
	}
	volumeDoc struct {
		Size    bytes64
		Driver  string
		Options map[string]string
	}
)

// A span is a duration in normal form.
type span time.Duration

// UnmarshalText reads "1m30s".
func (s *span) UnmarshalText(b []byte) error {
	d, err := time.ParseDuration(string(b))
	*s = span(d)
	return err
}

func (s *span) or(other time.Duration) time.Duration {
	if s == nil {
		return other
	}
	return time.Duration(*s)
}

// bytes64 is a size in normal form.
type bytes64 int64

// UnmarshalText reads "64MiB".
func (n *bytes64) UnmarshalText(b []byte) error {
	v, err := jobspecs.Size(string(b))
	*n = bytes64(v)
	return err
}

// resolve gives every expression of a document its value and reads it as T.
func resolve[T any](r *renderer, v view, doc document, s *block, path string) (T, error) {
	var out T
	values, err := (&resolver{renderer: r, view: v, doc: doc, path: path}).body(doc, s, path)
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(encode(values), &out); err != nil {
		return out, fmt.Errorf("read template: %w", err)
	}
	return out, nil
}

// A resolver evaluates the expressions of one document for one member.
type resolver struct {
	*renderer
	view
	doc    document
	path   string            // of the document
	ctx    *hcl2.EvalContext // made when the first expression is met
	others bool              // ctx has the other members
}

func (r *resolver) body(d document, s *block, path string) (document, error) {
	out := document{}
	for _, key := range sortedKeys(d) {
		v, err := r.entry(d[key], s, key, join(path, key))
		if err != nil {
			return nil, err
		}
		if v != nil {
			out[key] = v
		}
	}
	return out, nil
}

// entry is one attribute or group of blocks. What the schema does not know here
// (names of volumes, variables) is none of the member's.
func (r *resolver) entry(v any, s *block, key, path string) (any, error) {
	if a, ok := s.attr(key); ok {
		value, err := r.value(v, a.kind, path)
		if err == nil && value == nil && a.required {
			err = errors.New("it has no value")
		}
		return value, atAttribute(path, err)
	}
	group, isGroup := v.(document)
	b := s.block(key)
	if b == nil || !isGroup {
		return nil, nil
	}
	if b.label == "" {
		return r.body(group, b, path)
	}
	out := document{}
	for _, label := range sortedKeys(group) {
		one, err := r.labelled(group[label], b, join(path, label))
		if err != nil {
			return nil, err
		}
		out[label] = one
	}
	return out, nil
}

func atAttribute(path string, err error) error {
	if known := (*attributeError)(nil); err == nil || errors.As(err, &known) {
		return err
	}
	return &attributeError{path, err}
}

func (r *resolver) labelled(v any, b *block, path string) (any, error) {
	if !b.list {
		d, _ := v.(document)
		return r.body(d, b, path)
	}
	list, _ := v.([]any)
	out := make([]any, len(list))
	for i, item := range list {
		d, _ := item.(document)
		one, err := r.body(d, b, fmt.Sprintf("%s[%d]", path, i))
		if err != nil {
			return nil, err
		}
		out[i] = one
	}
	return out, nil
}

// value is an attribute's value; nil when its expression gives null.
func (r *resolver) value(v any, k *kind, path string) (any, error) {
	if inner, ok := revealed(v); ok {
		out, err := r.value(inner, k, path)
		if err != nil { // it may quote the value
			err = fmt.Errorf("the sensitive value is not %s", k.word)
		}
		return out, err
	}
	if text, ok := expression(v); ok {
		return r.evaluate(text, k)
	}
	switch v := v.(type) {
	case []any:
		return r.list(v, k, path)
	case document:
		return r.table(v, k, path)
	}
	return v, nil
}

func (r *resolver) list(list []any, k *kind, path string) (any, error) {
	out := make([]any, len(list))
	for i, item := range list {
		v, err := r.value(item, k.elem, path)
		if err == nil && v == nil {
			err = fmt.Errorf("element %d is null", i)
		}
		if err != nil {
			return nil, atAttribute(fmt.Sprintf("%s[%d]", path, i), err)
		}
		out[i] = v
	}
	return out, nil
}

func (r *resolver) table(d document, k *kind, path string) (any, error) {
	out := document{}
	for _, key := range sortedKeys(d) {
		v, err := r.value(d[key], k.elem, path)
		if err != nil {
			return nil, atAttribute(join(path, key), err)
		}
		if v != nil {
			out[key] = v
		}
	}
	return out, nil
}

func (r *resolver) evaluate(text string, k *kind) (out any, err error) {
	defer func() { // a library that panics must not take the daemon with it
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: %v", text, p)
		}
	}()
	e, err := r.parse(text)
	if err != nil {
		return nil, err
	}
	ctx, err := r.context(e.others)
	if err != nil {
		return nil, err
	}
	r.addFunctions(ctx.Functions, e.calls)
	v, ds := r.meter.valueOf(e.Expression, e.steps, e.refs, ctx)
	if ds.HasErrors() {
		if set := r.missingSet(e.refs); set != "" {
			return nil, fmt.Errorf("%s: there is no set %s in namespace %s", text, set, r.set.Namespace)
		}
		return nil, fmt.Errorf("%s: %s", text, reason(ds))
	}
	if v.IsNull() {
		return nil, nil
	}
	if !v.IsWhollyKnown() {
		return nil, fmt.Errorf("%s: it has no value", text)
	}
	return k.read(v)
}

// A parsedExpression is one with what it needs.
type parsedExpression struct {
	hclsyntax.Expression
	others bool             // the other members
	refs   []hcl2.Traversal // names
	calls  []string         // functions
	steps  int              // of the evaluator
}

func (r *resolver) parse(text string) (parsedExpression, error) {
	if e, ok := r.parsed[text]; ok {
		return e, nil
	}
	e, ds := hclsyntax.ParseExpression([]byte(text), "", hcl2.InitialPos)
	if ds.HasErrors() {
		return parsedExpression{}, fmt.Errorf("%s: %s", text, reason(ds))
	}
	refs := hclsyntax.Variables(e)
	p := parsedExpression{Expression: e, others: asksForOthers(refs), refs: refs, calls: calledIn(e)}
	instrument(e, r.meter)
	p.steps = sizeOf(e)
	r.parsed[text] = p
	return p, nil
}

// missingSet names another set that is meant and not there; "" none.
func (v view) missingSet(refs []hcl2.Traversal) string {
	for _, t := range refs {
		name := secondName(t)
		if _, there := v.env.Sets[name]; t.RootName() == "sets" && name != "" && !there {
			return name
		}
	}
	return ""
}

func calledIn(e hclsyntax.Expression) (names []string) {
	hclsyntax.VisitAll(e, func(n hclsyntax.Node) hcl2.Diagnostics {
		if call, ok := n.(*hclsyntax.FunctionCallExpr); ok {
			names = append(names, call.Name)
		}
		return nil
	})
	return names
}

func reason(ds hcl2.Diagnostics) string {
	for _, d := range ds {
		if d.Severity == hcl2.DiagError {
			return lowerFirst(d.Summary) + ": " + d.Detail
		}
	}
	return ds.Error()
}

func (r *resolver) context(others bool) (*hcl2.EvalContext, error) {
	if r.ctx == nil {
		vars := map[string]cty.Value{}
		for name, encoded := range part(r.doc, "var") {
			v, err := decodeValue(opened(encoded))
			if err != nil {
				return nil, fmt.Errorf("var.%s: it cannot be read", name)
			}
			vars[name] = v
		}
		secrets := map[string]cty.Value{}
		for name, encoded := range part(r.doc, "secret") {
			text, _ := opened(encoded).(string)
			secrets[name] = cty.StringVal(text)
		}
		r.ctx = &hcl2.EvalContext{Variables: r.variables(others), Functions: r.functions()}
		r.ctx.Variables["var"] = cty.ObjectVal(vars)
		r.ctx.Variables["secret"] = cty.ObjectVal(secrets)
		r.others = others
	}
	if others && !r.others {
		r.ctx.Variables["set"] = r.setValue(true)
		r.others = true
	}
	return r.ctx, nil
}

// functions are those of the document that its expressions called so far, shared by
// all members.
func (r *resolver) functions() map[string]function.Function {
	if r.funcs[r.path] == nil {
		r.funcs[r.path] = map[string]function.Function{}
	}
	return r.funcs[r.path]
}

// addFunctions makes what an expression calls; all of them would take longer than most
// members do.
func (r *resolver) addFunctions(have map[string]function.Function, names []string) {
	for _, name := range names {
		if _, ok := have[name]; ok {
			continue
		}
		if f, ok := pure[name]; ok {
			have[name] = r.meter.metered(name, f)
		} else if impure[name] != "" {
			maps.Copy(have, impureFunctions(storedFiles(part(r.doc, "read")), nil, r.meter))
		}
	}
}

// storedFiles are the files that a document carries.
type storedFiles document

func (f storedFiles) file(path string) (string, error) {
	text, ok := opened(f[path]).(string)
	if !ok {
		return "", fmt.Errorf("there is no file %q", path)
	}
	return text, nil
}

func (f storedFiles) exists(path string) (bool, error) {
	_, ok := opened(f[path]).(string)
	return ok, nil
}

// podSpec is what does not belong to a container.
func (v view) podSpec(pod podDoc) jobspecs.PodSpec {
	ns, domain := v.set.Namespace, v.env.domain()
	return jobspecs.PodSpec{
		Set:              v.set.Key(),
		Ordinal:          v.env.Ordinal,
		Name:             jobspecs.MemberName(v.set.Name, v.env.Ordinal),
		Revision:         v.env.Revision,
		Service:          v.service,
		Domain:           jobspecs.ServiceDomain(v.service, ns, domain),
		Search:           []string{ns + ".svc." + domain, "svc." + domain, domain},
		Network:          jobspecs.NetworkName(ns),
		Address:          v.env.Addresses[v.env.Ordinal],
		Labels:           pod.Labels,
		ExtraHosts:       pod.ExtraHosts,
		Sysctls:          pod.Sysctls,
		TerminationGrace: pod.TerminationGrace.or(30 * time.Second),
		ShareProcesses:   pod.ShareProcesses,
		Networks:         pod.Networks,
	}
}

// volumes are those of the template's claims. What the set says about a claim
// (size, driver, options) is no part of the template.
func (r *renderer) volumes(v view) ([]jobspecs.VolumeSpec, error) {
	var out []jobspecs.VolumeSpec
	names, _ := r.doc["volume"].([]any)
	for _, n := range names {
		name, _ := n.(string)
		claim, err := resolve[volumeDoc](r, v, r.claims[name], volumeSchema, "volume."+name)
		if err != nil {
			return nil, err
		}
		out = append(out, jobspecs.VolumeSpec{
			Claim:   name,
			Name:    jobspecs.VolumeName(v.set.Namespace, name, v.set.Name, v.env.Ordinal),
			Driver:  or(claim.Driver, "local"),
			Options: claim.Options,
			Size:    int64(claim.Size),
		})
	}
	return out, nil
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func ports(written map[string]portDoc) []jobspecs.Port {
	var out []jobspecs.Port
	for _, name := range sortedKeys(written) {
		p := written[name]
		port := jobspecs.Port{Name: name, Container: p.Container, Protocol: or(p.Protocol, "tcp"), Host: p.Host}
		if p.Host != 0 {
			port.HostIP = or(p.HostIP, "127.0.0.1")
		}
		out = append(out, port)
	}
	return out
}

func files(written map[string]fileDoc) []jobspecs.File {
	var out []jobspecs.File
	for _, path := range sortedKeys(written) {
		f := written[path]
		mode, _ := strconv.ParseUint(or(f.Mode, "0644"), 8, 32)
		out = append(out, jobspecs.File{Path: path, Content: []byte(f.Content), Mode: uint32(mode), Owner: f.Owner, Sensitive: f.Sensitive})
	}
	return out
}
