package daemon

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/jobspecs/hcl"
)

// making are the secrets of one request: what its sets find, whether it is
// stored already or is stored with them.
type making struct {
	dry   bool // nothing is made: a secret that is missing is something of its form
	found map[string]store.Secret
	fresh []store.Secret
}

func newMaking(dry bool) *making { return &making{dry: dry, found: map[string]store.Secret{}} }

// secrets gives the secrets that a scope declares their values in the namespaces
// of its sets, by the names that the reader of specs looks them up with; notes
// says what a user should know of them.
func (d *Daemon) secrets(f *hcl.File, namespace string, m *making) (values map[string]string, notes []string, err error) {
	for i := range f.Specs {
		written := f.Specs[i].Set.Namespace
		actual := written
		if namespace != "" && !f.Specs[i].Placed {
			actual = namespace
		}
		for _, declared := range f.Secrets {
			x, note, err := d.secret(actual, declared, m)
			if err != nil {
				return nil, nil, err
			}
			if note != "" && !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
			if values == nil {
				values = map[string]string{}
			}
			values[hcl.SecretKey(written, declared.Name)] = x.Value
		}
	}
	return values, notes, nil
}

// secret is one secret of a namespace, made where it is missing.
func (d *Daemon) secret(namespace string, declared hcl.Secret, m *making) (x store.Secret, note string, err error) {
	key := hcl.SecretKey(namespace, declared.Name)
	x, known := m.found[key]
	if !known {
		if x, err = d.store.Secret(namespace, declared.Name); err != nil && !errors.Is(err, store.ErrNoSecret) {
			return x, "", err
		}
		known = err == nil
	}
	switch {
	case known && (x.Format != declared.Format || x.Length != declared.Length):
		note = fmt.Sprintf("secret %s stays what it is, %d characters of %s, although the file says %d of %s; stsd secret rm %s and an apply make another one",
			declared.Name, x.Length, x.Format, declared.Length, declared.Format, declared.Name)
	case !known && m.dry:
		x = store.Secret{Namespace: namespace, Name: declared.Name, Format: declared.Format, Length: declared.Length, Value: hcl.Placeholder(declared)}
		note = fmt.Sprintf("secret %s is made by the apply; the name of the revision depends on it", declared.Name)
	case !known:
		x = store.Secret{
			Namespace: namespace, Name: declared.Name, Format: declared.Format, Length: declared.Length,
			Value: randomText(declared), Created: d.now().UTC(),
		}
		m.fresh = append(m.fresh, x)
	}
	m.found[key] = x
	return x, note, nil
}

// randomText is a new value of a secret's form.
func randomText(s hcl.Secret) string {
	b := make([]byte, max(s.Length, 16))
	rand.Read(b) // never fails (crypto/rand)
	switch s.Format {
	case hcl.FormatUUID: // RFC 9562, version 4
		b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
		return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
	case hcl.FormatBase64URL:
		return base64.RawURLEncoding.EncodeToString(b)[:s.Length]
	}
	return hex.EncodeToString(b)[:s.Length]
}

// Secrets lists generated secrets, without their values.
func (d *Daemon) Secrets(_ context.Context, namespace string) ([]client.Secret, error) {
	stored, err := d.store.Secrets()
	if err != nil {
		return nil, err
	}
	records, err := d.store.Records()
	if err != nil {
		return nil, err
	}
	out := []client.Secret{}
	for _, x := range stored {
		if namespace != "" && x.Namespace != namespace {
			continue
		}
		out = append(out, client.Secret{
			Namespace: x.Namespace, Name: x.Name, Format: x.Format, Length: x.Length, Created: x.Created,
			UsedBy: usersOf(records, x.Namespace, x.Name),
		})
	}
	return out, nil
}

// usersOf are the sets whose template reads a secret.
func usersOf(records []store.Record, namespace, name string) []string {
	out := []string{}
	for i := range records {
		r := &records[i]
		if r.Set.Namespace == namespace && slices.Contains(hcl.SecretNames(&r.Set, r.Template), name) {
			out = append(out, r.Set.Name)
		}
	}
	return out
}

// RemoveSecret forgets a secret. Sets that use it go on with the value they have
// until their next apply, which makes another one; that has to be confirmed.
func (d *Daemon) RemoveSecret(_ context.Context, namespace, name string, r client.SecretRequest) (client.SecretResult, error) {
	d.write.Lock()
	defer d.write.Unlock()
	result := client.SecretResult{Namespace: namespace, Name: name}
	if _, err := d.store.Secret(namespace, name); err != nil {
		return result, noSecret(namespace, name, err)
	}
	records, err := d.store.Records()
	if err != nil {
		return result, err
	}
	users := usersOf(records, namespace, name)
	if r.DryRun {
		result.Message = fmt.Sprintf("secret %s would be removed", name)
		return result, nil
	}
	if len(users) > 0 && !r.Yes && !slices.Contains(r.Confirm, name) {
		return result, secretInUse(name, users)
	}
	if err := d.store.DeleteSecret(namespace, name); err != nil {
		return result, noSecret(namespace, name, err)
	}
	result.Removed, result.Message = true, fmt.Sprintf("secret %s removed", name)
	if len(users) > 0 {
		result.Message += "; the next apply makes another one"
	}
	for _, set := range users {
		d.events.record(jobspecs.Key{Namespace: namespace, Name: set}, "", normal, "SecretRemoved", fmt.Sprintf("secret %s is removed; the next apply makes another one", name))
	}
	d.log.Info("secret removed", "namespace", namespace, "secret", name)
	return result, nil
}

func noSecret(namespace, name string, err error) error {
	if !errors.Is(err, store.ErrNoSecret) {
		return storeProblem(err)
	}
	return &client.Problem{
		Type: client.ProblemNotFound, Title: fmt.Sprintf("no secret %s in namespace %s", name, namespace), Status: http.StatusNotFound,
		Detail: "stsd secret ls -A shows what there is",
	}
}

func secretInUse(name string, users []string) error {
	p := &client.Problem{
		Type: client.ProblemUnconfirmed, Title: fmt.Sprintf("secret %s is in use", name), Status: http.StatusForbidden, Set: name,
		Detail: "confirm with the secret's name, or --yes",
	}
	for _, set := range users {
		p.Data = append(p.Data, fmt.Sprintf("value: set %s uses it; its next apply makes another one and replaces its members", set))
	}
	return p
}

// shown is what may be shown of a set's revision: its source with the images that were
// set beside it.
func (d *Daemon) shown(set string, r *jobspecs.Revision) (jobspecs.Template, []jobspecs.Source) {
	sources, _ := hcl.RedactedScope(r.Origin.Source, r.Origin.Inputs)
	return hcl.Redacted(r.Template, d.store.HashKey()), hcl.WithImagesShown(sources, set, r.Origin.Images)
}

// parcel is what a plan keeps for its apply where it must not be read: the
// scopes of a request, sealed.
type parcel struct {
	Scopes    []client.Scope `json:"scopes"`
	Namespace string         `json:"namespace"`
}

// parcelOf seals a request that has something sensitive in it; nil when it has
// nothing to hide.
func (d *Daemon) parcelOf(r client.ApplyRequest) ([]byte, error) {
	secret := false
	for _, s := range r.Scopes {
		shown, in := hcl.RedactedScope(s.Sources, s.Inputs)
		secret = secret || !sameJSON(s, client.Scope{Sources: shown, Inputs: in})
	}
	if !secret {
		return nil, nil
	}
	return d.store.Seal(parcel{r.Scopes, r.Namespace})
}

func sameJSON(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// opened is a request with what was sealed for it by a plan.
func (d *Daemon) opened(r client.ApplyRequest) (client.ApplyRequest, error) {
	if len(r.Sealed) == 0 {
		return r, nil
	}
	if len(r.Scopes) > 0 {
		return r, invalid("a request has either scopes or what a plan sealed, not both")
	}
	var p parcel
	if err := d.store.Unseal(r.Sealed, &p); err != nil {
		return r, invalid("this plan was made by another daemon, or changed since: plan again")
	}
	r.Scopes, r.Sealed = p.Scopes, nil
	if r.Namespace == "" {
		r.Namespace = p.Namespace
	}
	return r, nil
}
