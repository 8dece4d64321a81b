package scheduler

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
)

const metricPrefix = "gangctl_scheduler_"

// defined are the names of the metrics in the sources.
func defined(t *testing.T) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			options, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			if kind, ok := options.Type.(*ast.SelectorExpr); !ok || !strings.HasSuffix(kind.Sel.Name, "Opts") {
				return true
			}
			for _, field := range options.Elts {
				pair, ok := field.(*ast.KeyValueExpr)
				if !ok {
					continue
				}
				if name, is := pair.Key.(*ast.Ident); is && name.Name == "Name" {
					if text, is := pair.Value.(*ast.BasicLit); is {
						value, err := strconv.Unquote(text.Value)
						if err != nil {
							t.Error(err)
						}
						names = append(names, value)
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

// documented are the names in the tables of docs/scheduler.md.
func documented(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../docs/scheduler.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## Metrics\n")
	if !found {
		t.Fatal("docs/scheduler.md has no section Metrics")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var names []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)").FindAllStringSubmatch(section, -1) {
		names = append(names, row[1])
	}
	slices.Sort(names)
	return names
}

// Every metric is documented and registered, and every one that is documented is there.
func TestMetricsAreDocumented(t *testing.T) {
	in, out := defined(t), documented(t)
	if len(in) < 15 || !slices.Equal(in, out) {
		t.Errorf("in the sources:\n%s\nin docs/scheduler.md:\n%s", strings.Join(in, "\n"), strings.Join(out, "\n"))
	}
	var registered []string
	for _, part := range newInstance(t).counted {
		part.Register(func(all ...metrics.Registerable) {
			for _, m := range all {
				registered = append(registered, strings.TrimPrefix(m.FQName(), metricPrefix))
			}
		})
	}
	slices.Sort(registered)
	if !slices.Equal(registered, in) {
		t.Errorf("registered:\n%s\nin the sources:\n%s", strings.Join(registered, "\n"), strings.Join(in, "\n"))
	}
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if strings.HasPrefix(family.GetName(), metricPrefix) {
			return
		}
	}
	t.Error("/metrics has none of ours")
}

// Each plugin decides something, and has a metric that counts how often.
func TestEveryPluginHasAMetric(t *testing.T) {
	measured := map[string]bool{}
	for _, part := range newInstance(t).counted {
		measured[reflect.TypeOf(part).Elem().PkgPath()] = true
	}
	for _, plugin := range extensions(parts{}) {
		factory := runtime.FuncForPC(reflect.ValueOf(plugin.make).Pointer()).Name()
		if of := strings.LastIndex(factory, "/"); !measured[factory[:of]+strings.SplitN(factory[of:], ".", 2)[0]] {
			t.Errorf("plugin %s, made by %s, has no metric", plugin.name, factory)
		}
	}
}

var (
	made  sync.Once // metrics can be registered once in a process
	setUp *instance
)

// newInstance sets up a scheduler without a server.
func newInstance(t *testing.T) *instance {
	t.Helper()
	made.Do(func() {
		kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
		config := clientcmdapi.NewConfig()
		config.Clusters["nowhere"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}
		config.Contexts["nowhere"] = &clientcmdapi.Context{Cluster: "nowhere"}
		config.CurrentContext = "nowhere"
		if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
			t.Fatal(err)
		}
		gangCycle(t)
		opts := &settings{Options: options.NewOptions()}
		flags := pflag.NewFlagSet("scheduler", pflag.ContinueOnError)
		for _, section := range opts.Flags.Order {
			flags.AddFlagSet(opts.Flags.FlagSets[section])
		}
		err := flags.Parse([]string{"--kubeconfig", kubeconfig, "--secure-port=0", "--leader-elect=false", "--authentication-skip-lookup"})
		if err != nil {
			t.Fatal(err)
		}
		if setUp, err = setup(t.Context(), opts); err != nil {
			t.Fatal(err)
		}
	})
	return setUp
}
