package credential

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/gangctl/gangctl/sandbox/datadir"
	"github.com/gangctl/gangctl/sandbox/setting"
)

func claimed(t *testing.T) datadir.Dir {
	t.Helper()
	dir := datadir.Dir(t.TempDir())
	if _, err := dir.Claim(datadir.NewMarker("v1", "dev", setting.Defaults())); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestEnsureKeepsWhatIsThere(t *testing.T) {
	dir := claimed(t)
	a, err := Ensure(dir)
	if err != nil {
		t.Fatal(err)
	}
	ca, _ := os.ReadFile(CA(dir))
	b, err := Ensure(dir)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, u := range Users() {
		token := a.Token(u.Key)
		if len(token) < 32 || seen[token] {
			t.Errorf("%s: token %q is short or not unique", u.Key, token)
		}
		seen[token] = true
		if token != b.Token(u.Key) {
			t.Errorf("%s: token changed", u.Key)
		}
	}
	if again, _ := os.ReadFile(CA(dir)); string(ca) != string(again) {
		t.Error("certificate authority changed")
	}
}

// kube-apiserver wants token,user,uid,"group,group".
func TestTokenFile(t *testing.T) {
	s, err := Ensure(claimed(t))
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(s.TokenFile())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	groups := map[string]string{}
	for _, row := range rows {
		groups[row[1]] = row[3]
	}
	if len(rows) != len(Users()) || groups["gangctl-sandbox-admin"] != "system:masters" {
		t.Errorf("got %v", rows)
	}
	for user, g := range groups {
		if user != "gangctl-sandbox-admin" && strings.Contains(g, "masters") {
			t.Errorf("%s is a master", user)
		}
	}
	if want := "system:serviceaccounts,system:serviceaccounts:gangctl-system,system:authenticated"; groups["system:serviceaccount:gangctl-system:gang-scheduler"] != want {
		t.Errorf("gang scheduler's groups: %v", groups)
	}
}

func TestCertificatesVerify(t *testing.T) {
	dir := claimed(t)
	if _, err := Ensure(dir); err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(CA(dir))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	verify := func(cert, key string, opts x509.VerifyOptions) {
		t.Helper()
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		opts.Roots = pool
		if _, err := pair.Leaf.Verify(opts); err != nil {
			t.Error(err)
		}
	}
	cert, key := Serving(dir)
	verify(cert, key, x509.VerifyOptions{DNSName: "127.0.0.1"})
	cert, key = KubeletClient(dir)
	verify(cert, key, x509.VerifyOptions{KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

func TestWriteKubeconfigs(t *testing.T) {
	dir := claimed(t)
	s, err := Ensure(dir)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kc")
	if err := s.WriteKubeconfigs(path, 6443); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	c, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cluster := c.Clusters[c.Contexts[Context].Cluster]
	if c.CurrentContext != Context || cluster.Server != "https://127.0.0.1:6443" || cluster.InsecureSkipTLSVerify || len(cluster.CertificateAuthorityData) == 0 {
		t.Errorf("got %+v %+v", c, cluster)
	}
	if c.AuthInfos[Context].Token != s.Token(Admin) {
		t.Error("not the administrator's token")
	}
	c.Contexts[Context].Namespace = "a"
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		port int
		want string
	}{{6443, "a"}, {6444, "default"}} { // unchanged, then with another server
		port, want := tt.port, tt.want
		if err := s.WriteKubeconfigs(path, port); err != nil {
			t.Fatal(err)
		}
		if c, err = clientcmd.LoadFromFile(path); err != nil || c.Contexts[Context].Namespace != want {
			t.Errorf("port %d: namespace %q, want %q, %v", port, c.Contexts[Context].Namespace, want, err)
		}
		if server := c.Clusters[Context].Server; server != Server(port) {
			t.Errorf("port %d: server %s", port, server)
		}
	}
	if err := s.WriteKubeconfigs(filepath.Join(path, "under-a-file"), 1); err == nil {
		t.Error("a path that cannot be written is accepted")
	}
}

// What is not a sandbox's alone, or leads elsewhere, is not ours.
func TestSameAccess(t *testing.T) {
	dir := claimed(t)
	s, err := Ensure(dir)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := s.Kubeconfig(Admin, 6443)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		change func(*clientcmdapi.Config)
		want   bool
	}{
		{"another namespace", func(c *clientcmdapi.Config) { c.Contexts[Context].Namespace = "a" }, true},
		{"another server", func(c *clientcmdapi.Config) { c.Clusters[Context].Server = Server(1) }, false},
		{"another authority", func(c *clientcmdapi.Config) { c.Clusters[Context].CertificateAuthorityData = []byte("x") }, false},
		{"another token", func(c *clientcmdapi.Config) { c.AuthInfos[Context].Token = "x" }, false},
		{"a cluster beside it", func(c *clientcmdapi.Config) { c.Clusters["prod"] = c.Clusters[Context] }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := clientcmd.Load(ours)
			if err != nil {
				t.Fatal(err)
			}
			tt.change(c)
			path := filepath.Join(t.TempDir(), "kc")
			if err := clientcmd.WriteToFile(*c, path); err != nil {
				t.Fatal(err)
			}
			if got := SameAccess(path, ours); got != tt.want {
				t.Errorf("got %v", got)
			}
		})
	}
	if SameAccess(filepath.Join(t.TempDir(), "none"), ours) {
		t.Error("a file that is not there")
	}
}
