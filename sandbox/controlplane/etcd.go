package controlplane

import (
	"context"
	"fmt"
	"net/url"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/gangctl/gangctl/sandbox/component"
)

// runEtcd serves the storage on a socket until ctx ends. It trades durability
// against power failures for speed; a killed process loses nothing.
func runEtcd(ctx context.Context, args []string) error {
	flags := pflag.NewFlagSet(component.Etcd, pflag.ContinueOnError)
	dir := flags.String("storage", "", "directory of the database")
	if err := flags.Parse(args); err != nil {
		return err
	}
	client, err := url.Parse(component.EtcdSocket)
	if err != nil {
		return fmt.Errorf("address of etcd: %w", err)
	}
	cfg := embed.NewConfig()
	cfg.Dir = *dir
	cfg.LogLevel = "warn"
	cfg.UnsafeNoFsync = true
	cfg.EnableGRPCGateway = false
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	cfg.ListenPeerUrls = nil // a member without peers listens for none
	cfg.QuotaBackendBytes = 4 << 30
	server, err := embed.StartEtcd(cfg)
	if err != nil {
		return fmt.Errorf("start etcd in %s: %w", *dir, err)
	}
	defer server.Close()
	select {
	case <-ctx.Done():
		return nil
	case err := <-server.Err():
		return fmt.Errorf("serve etcd: %w", err)
	}
}
