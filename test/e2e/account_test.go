package e2e

import (
	"bytes"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/sandbox/demo"
)

// account is a ServiceAccount that types commands with its own token.
type account struct {
	name       string
	kubeconfig string
}

// newAccount makes an account without any right of its own.
func newAccount(t *testing.T, stage *demo.Stage, name string) account {
	t.Helper()
	accounts := stage.Client().CoreV1().ServiceAccounts(demo.Namespace)
	_, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	must(t, err)
	token, err := accounts.CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(t, err)
	admin := stage.Config()
	config := clientcmdapi.NewConfig()
	config.Clusters["sandbox"] = &clientcmdapi.Cluster{Server: admin.Host, CertificateAuthorityData: admin.CAData, CertificateAuthority: admin.CAFile}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: "sandbox", AuthInfo: name, Namespace: demo.Namespace}
	config.CurrentContext = name
	a := account{name: name, kubeconfig: filepath.Join(t.TempDir(), name)}
	must(t, clientcmd.WriteToFile(*config, a.kubeconfig))
	return a
}

// user is what the API server calls the account.
func (a account) user() string { return "system:serviceaccount:" + demo.Namespace + ":" + a.name }

// reads lets the account read everything, in the demo's namespace or in all.
func (a account) reads(t *testing.T, stage *demo.Stage, everywhere bool) {
	t.Helper()
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: demo.Namespace, Name: a.name}}
	rules := []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}}}
	meta := metav1.ObjectMeta{Name: a.name + "-reads"}
	rbac, ctx := stage.Client().RbacV1(), t.Context()
	if everywhere {
		_, err := rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
		must(t, err)
		_, err = rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name}}, metav1.CreateOptions{})
		must(t, err)
		return
	}
	_, err := rbac.Roles(demo.Namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	must(t, err)
	_, err = rbac.RoleBindings(demo.Namespace).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}}, metav1.CreateOptions{})
	must(t, err)
}

// types types a gangctl command as the account.
func (a account) types(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), programs.gangctl, append([]string{"--kubeconfig", a.kubeconfig}, args...)...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			t.Fatal(err)
		}
		code = exit.ExitCode()
	}
	t.Logf("%s: gangctl %s\n%s%s", a.name, strings.Join(args, " "), out.String(), errOut.String())
	return out.String(), errOut.String(), code
}

// pasted is the YAML of the first `kubectl apply -f - <<'EOF'` in a text.
func pasted(t *testing.T, text string) string {
	t.Helper()
	_, after, begins := strings.Cut(text, " apply -f - <<'EOF'\n") // between it and kubectl are the flags of the run
	grant, _, ends := strings.Cut(after, "EOF")
	if !begins || !ends {
		t.Fatalf("nothing to paste in\n%s", text)
	}
	return grant
}

// grant does what an administrator would do who pastes the YAML, and fails on anything but roles and bindings.
func grant(t *testing.T, stage *demo.Stage, text string) {
	t.Helper()
	grantTo(t, stage.Client(), text)
}

// grantTo is grant for a cluster that has no stage.
func grantTo(t *testing.T, client kubernetes.Interface, text string) {
	t.Helper()
	rbac, ctx := client.RbacV1(), t.Context()
	for _, doc := range strings.Split(text, "---\n") {
		var kind metav1.TypeMeta
		must(t, yaml.Unmarshal([]byte(doc), &kind))
		var err error
		switch kind.Kind {
		case "ClusterRole":
			var role rbacv1.ClusterRole
			must(t, yaml.UnmarshalStrict([]byte(doc), &role))
			_, err = rbac.ClusterRoles().Create(ctx, &role, metav1.CreateOptions{})
		case "ClusterRoleBinding":
			var binding rbacv1.ClusterRoleBinding
			must(t, yaml.UnmarshalStrict([]byte(doc), &binding))
			_, err = rbac.ClusterRoleBindings().Create(ctx, &binding, metav1.CreateOptions{})
		case "Role":
			var role rbacv1.Role
			must(t, yaml.UnmarshalStrict([]byte(doc), &role))
			_, err = rbac.Roles(role.Namespace).Create(ctx, &role, metav1.CreateOptions{})
		case "RoleBinding":
			var binding rbacv1.RoleBinding
			must(t, yaml.UnmarshalStrict([]byte(doc), &binding))
			_, err = rbac.RoleBindings(binding.Namespace).Create(ctx, &binding, metav1.CreateOptions{})
		case "Namespace": // that the grant is for
			var namespace corev1.Namespace
			must(t, yaml.UnmarshalStrict([]byte(doc), &namespace))
			if _, err = client.CoreV1().Namespaces().Create(ctx, &namespace, metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
				err = nil
			}
		default:
			t.Fatalf("the grant holds a %q:\n%s", kind.Kind, text)
		}
		must(t, err)
	}
}
