package docker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"

	"github.com/stsd/stsd/jobspecs"
)

// maxBody is how much of an answer a check reads, in bytes.
const maxBody = 10 << 10

// probes makes a connection per check, as a client that comes fresh would, and
// trusts any certificate, as the kubelet does. No proxy stands between.
var probes = &http.Client{
	Transport: &http.Transport{
		DisableKeepAlives:  true,
		DisableCompression: true,
		TLSClientConfig:    &tls.Config{InsecureSkipVerify: true},
	},
	CheckRedirect: redirect,
}

// redirect follows within the host. One that leads away says that the server
// answers, and is success.
func redirect(req *http.Request, via []*http.Request) error {
	if req.URL.Hostname() != via[0].URL.Hostname() {
		return http.ErrUseLastResponse
	}
	if len(via) >= 10 {
		return errors.New("redirected more than 10 times")
	}
	return nil
}

func checkHTTP(ctx context.Context, addr netip.Addr, c *jobspecs.HTTPCheck) error {
	scheme, path := c.Scheme, c.Path
	if scheme == "" {
		scheme = "http"
	}
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	at := endpoint(addr, c.Port) + path
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+at, nil)
	if err != nil {
		return fmt.Errorf("%s %s: %w", scheme, at, cause(ctx, err))
	}
	setHeaders(req, c.Headers)
	resp, err := probes.Do(req)
	if err != nil {
		return fmt.Errorf("%s %s: %w", scheme, at, cause(ctx, err))
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxBody)) // the server sees its answer read
	if resp.StatusCode < 200 || resp.StatusCode > 399 {
		return fmt.Errorf("%s %s: status %d", scheme, at, resp.StatusCode)
	}
	return nil
}

func setHeaders(req *http.Request, headers map[string]string) {
	req.Header.Set("User-Agent", "stsd")
	req.Header.Set("Accept", "*/*")
	for name, value := range headers {
		if strings.EqualFold(name, "Host") {
			req.Host = value
			continue
		}
		req.Header.Set(name, value)
	}
}
