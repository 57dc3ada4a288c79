package hcl

import "testing"

func TestNamesThatNoToolCanShowAreRefused(t *testing.T) {
	label := func(name string) string {
		return pod("labels = { \"" + name + "\" = \"x\" }\ncontainer \"web\" {\nimage = \"x\"\n}")
	}
	sysctl := func(name string) string {
		return pod("sysctls = { \"" + name + "\" = \"1\" }\ncontainer \"web\" {\nimage = \"x\"\n}")
	}
	option := func(name string) string {
		return pod("volume \"data\" {\noptions = { \"" + name + "\" = \"x\" }\n}\ncontainer \"web\" {\nimage = \"x\"\nmount \"data\" {\npath = \"/d\"\n}\n}")
	}
	env := func(name string) string { return web("env = { \"" + name + "\" = \"x\" }") }
	log := func(name string) string {
		return web("log {\ndriver = \"x\"\noptions = { \"" + name + "\" = \"x\" }\n}")
	}
	header := func(name, value string) string {
		return web("probe \"readiness\" {\nhttp {\nport = 80\nheaders = { \"" + name + "\" = \"" + value + "\" }\n}\n}")
	}
	for _, c := range []struct{ rule, text, want string }{
		{"a label with a zero byte", label(`a\u0000`), `"a\x00" cannot be the name of a label`},
		{"a label with an escape", label(`a\u001b[31m`), `"a\x1b[31m" cannot be the name of a label`},
		{"a label beyond ASCII", label("é"), `"é" cannot be the name of a label`},
		{"a label written from right to left", label(`a\u202eb`), `"a\u202eb" cannot be the name of a label`},
		{"a label for each member", label(`a\u0000${self.name}`), `"a\x00web-0" cannot be the name of a label`},
		{"a label as Docker's tools write it", label("com.example/some-name_1"), ""},
		{"a variable with a new line", env(`A\nB`), `"A\nB" cannot be the name of an environment variable`},
		{"a variable with a zero byte", env(`A\u0000`), `"A\x00" cannot be the name of an environment variable`},
		{"a variable with an equals sign", env(`A=B`), `"A=B" cannot be the name of an environment variable`},
		{"a variable with an invisible letter", env(`A\u200b`), `"A\u200b" cannot be the name of an environment variable`},
		{"a variable with dots", env(`a.b-c`), ""},
		{"a header with a new line", header(`A\n`, "x"), `"A\n" is no name of a header`},
		{"a header beyond ASCII", header("é", "x"), `"é" is no name of a header`},
		{"a header's value with a control character", header("A", `\u0007`), "A: a header's value has no control characters"},
		{"a kernel setting with a new line", sysctl(`net.core\n`), `"net.core\n" is no sysctl: want names and dots, as in net.core.somaxconn`},
		{"a kernel setting that leads out", sysctl("net...kernel.hostname"), `"net...kernel.hostname" is no sysctl: want names and dots, as in net.core.somaxconn`},
		{"a kernel setting with a slash", sysctl("net./../kernel"), `"net./../kernel" is no sysctl: want names and dots, as in net.core.somaxconn`},
		{"a kernel setting of a device", sysctl("net.ipv4.conf.br-0.rp_filter"), ""},
		{"an option of a volume with a control character", option(`o\u0001`), `"o\x01" cannot be a name here`},
		{"an option of a volume beyond ASCII", option("ö"), `"ö" cannot be a name here`},
		{"an option of a log with a new line", log(`a\n`), `"a\n" cannot be a name here`},
		{"an option of a log", log("max-size"), ""},
	} {
		if got := found(c.text); got != c.want {
			t.Errorf("%s: found %q, want %q", c.rule, got, c.want)
		}
	}
}
