package docker

import (
	"encoding/csv"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/container"

	"github.com/stsd/stsd/runtime"
)

// gpusOf reads what docker run --gpus takes: "all", "2", "device=0", or several
// of count, device, driver, capabilities and options as KEY=VALUE with commas
// between; a value that has commas itself stands, key and all, in double quotes.
func gpusOf(text string) ([]container.DeviceRequest, error) {
	if text == "" {
		return nil, nil
	}
	var r container.DeviceRequest
	fields, err := csv.NewReader(strings.NewReader(text)).Read()
	for i := 0; err == nil && i < len(fields); i++ {
		err = addGPUs(&r, fields[i])
	}
	if err != nil {
		return nil, problem(runtime.ReasonCreateFailed, err, "gpus %q", text)
	}
	if r.Count == 0 && r.DeviceIDs == nil {
		r.Count = 1
	}
	if r.Capabilities == nil {
		r.Capabilities = [][]string{{"gpu"}}
	}
	return []container.DeviceRequest{r}, nil
}

// gpusText is what gpusOf read, as short as it can be written.
func gpusText(requests []container.DeviceRequest) string {
	if len(requests) == 0 {
		return ""
	}
	r := requests[0]
	var list []string
	if r.Driver != "" {
		list = append(list, "driver="+r.Driver)
	}
	switch {
	case len(r.DeviceIDs) > 0:
		list = append(list, "device="+strings.Join(r.DeviceIDs, ","))
	case r.Count < 0:
		list = append(list, "all")
	case r.Count > 1 || len(list) == 0:
		list = append(list, strconv.Itoa(r.Count))
	}
	return strings.Join(list, ",")
}

func addGPUs(r *container.DeviceRequest, field string) (err error) {
	key, value, pair := strings.Cut(field, "=")
	if !pair {
		key, value = "count", field
	}
	switch key {
	case "count":
		r.Count, err = gpuCount(value)
	case "device":
		r.DeviceIDs = strings.Split(value, ",")
	case "driver":
		r.Driver = value
	case "capabilities":
		r.Capabilities = [][]string{append(strings.Split(value, ","), "gpu")}
	case "options":
		r.Options, err = gpuOptions(value)
	default:
		return fmt.Errorf("%q is none of count, device, driver, capabilities, options", key)
	}
	return err
}

func gpuCount(s string) (int, error) {
	if s == "all" {
		return -1, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return 0, errors.New(`want "all" or a number`)
	}
	return n, nil
}

func gpuOptions(s string) (map[string]string, error) {
	options := map[string]string{}
	for _, pair := range strings.Split(s, ",") {
		k, v, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, fmt.Errorf("option %q: want KEY=VALUE", pair)
		}
		options[k] = v
	}
	return options, nil
}
