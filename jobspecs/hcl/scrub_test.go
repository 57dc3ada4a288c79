package hcl

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

func TestTheWaysInWhichASecretIsPrinted(t *testing.T) {
	const secret = "Tr0ub4dor & 3/\"?>~"
	const key = "-----BEGIN KEY-----\n  c2VjcmV0LWtleS1saW5l  \nshort\n-----END KEY-----\n"
	known := Disguises([]string{secret, key, "abc"})
	for printed, want := range map[string]string{
		secret:                             hidden,
		url.QueryEscape(secret):            hidden,
		url.PathEscape(secret):             hidden,
		fmt.Sprintf("%q", secret):          `"` + hidden + `"`,
		hex.EncodeToString([]byte(secret)): hidden,
		strings.ToUpper(hex.EncodeToString([]byte(secret))):         hidden,
		base64.StdEncoding.EncodeToString([]byte(secret)):           hidden,
		base64.RawStdEncoding.EncodeToString([]byte(secret)):        hidden,
		base64.URLEncoding.EncodeToString([]byte(secret)):           hidden,
		base64.RawURLEncoding.EncodeToString([]byte(secret)):        hidden,
		base64.StdEncoding.EncodeToString([]byte(secret + "\n")):    hidden, // as echo writes it
		base64.RawURLEncoding.EncodeToString([]byte(secret + "\n")): hidden,

		key:                                hidden,
		strings.TrimSpace(key):             hidden,
		"line 2: c2VjcmV0LWtleS1saW5l bad": "line 2: " + hidden + " bad",
		base64.StdEncoding.EncodeToString([]byte("c2VjcmV0LWtleS1saW5l")): hidden,

		"abc":   "abc",   // so short that it is no secret
		"short": "short", // nor is a line that is
	} {
		if got := Scrub(printed, known); got != want {
			t.Errorf("%q is told as %q, want %q", printed, got, want)
		}
	}
}
