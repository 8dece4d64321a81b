// Package credential makes and keeps what the components of a sandbox trust each
// other by: one certificate authority, one certificate for servers, one for the
// API server as a client of kubelets, and a random token for each user.
package credential

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/gangctl/gangctl/sandbox/addon"
	"github.com/gangctl/gangctl/sandbox/datadir"
)

// User is a client identity of the API server.
type User struct {
	// Key is the short name, by which Set finds the token.
	Key string
	// Name and Groups are what RBAC sees.
	Name   string
	Groups []string
}

// The users of a sandbox.
const (
	Admin             = "admin"
	ControllerManager = "controller-manager"
	DefaultScheduler  = "default-scheduler"
	GangScheduler     = "gang-scheduler"
	Operator          = "operator"
	Nodes             = "nodes"
)

// Users returns everybody who gets a token. Only the administrator is a master;
// the others act under the roles that they would have in a real cluster.
func Users() []User {
	users := []User{
		{Key: Admin, Name: "gangctl-sandbox-admin", Groups: []string{"system:masters"}},
		{Key: ControllerManager, Name: "system:kube-controller-manager"},
		{Key: DefaultScheduler, Name: "system:kube-scheduler"},
		serviceAccount(GangScheduler, "gangctl-system", "gang-scheduler"),
		serviceAccount(Operator, "kubeflow", "training-operator"),
		serviceAccount(Nodes, "gangctl-sandbox", "nodes"),
	}
	for _, c := range addon.All() {
		users = append(users, serviceAccount(c.Name, c.Namespace, c.Account))
	}
	return users
}

func serviceAccount(key, namespace, name string) User {
	return User{
		Key:    key,
		Name:   "system:serviceaccount:" + namespace + ":" + name,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
}

// Set is the credentials of one sandbox, and where they lie.
type Set struct {
	dir    datadir.Dir
	tokens map[string]string
}

// Ensure loads the credentials of a data dir and makes those that are missing.
// Existing ones never change, so kubeconfigs stay valid.
func Ensure(dir datadir.Dir) (*Set, error) {
	s := &Set{dir: dir, tokens: map[string]string{}}
	data, err := os.ReadFile(dir.Path("pki", "tokens.json"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("read tokens: %w", err)
	default:
		if err := json.Unmarshal(data, &s.tokens); err != nil {
			return nil, fmt.Errorf("read %s: %w", dir.Path("pki", "tokens.json"), err)
		}
	}
	for _, u := range Users() {
		if s.tokens[u.Key] == "" {
			s.tokens[u.Key] = randomToken()
		}
	}
	if data, err = json.Marshal(s.tokens); err != nil {
		return nil, fmt.Errorf("encode tokens: %w", err)
	}
	if err := dir.WriteFile("pki/tokens.json", data); err != nil {
		return nil, err
	}
	if err := dir.WriteFile("pki/tokens.csv", []byte(s.tokenFile())); err != nil {
		return nil, err
	}
	return s, ensureCertificates(dir)
}

// Token is a user's bearer token.
func (s *Set) Token(user string) string { return s.tokens[user] }

// TokenFile is the file for kube-apiserver's --token-auth-file.
func (s *Set) TokenFile() string { return s.dir.Path("pki", "tokens.csv") }

func (s *Set) tokenFile() string {
	var b strings.Builder
	for _, u := range Users() {
		fmt.Fprintf(&b, "%s,%s,%s,%q\n", s.tokens[u.Key], u.Name, u.Key, strings.Join(u.Groups, ","))
	}
	return b.String()
}

func randomToken() string {
	var b [24]byte
	_, _ = rand.Read(b[:]) // never fails, as documented
	return hex.EncodeToString(b[:])
}
