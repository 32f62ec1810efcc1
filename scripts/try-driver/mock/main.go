// Program mock-driver serves the CSI driver that Kubernetes' own end-to-end tests use, which keeps its volumes in memory.
//
//	mock-driver SOCKET DRIVER-NAME
package main

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/kubernetes/test/e2e/storage/drivers/csi-test/driver"
	"k8s.io/kubernetes/test/e2e/storage/drivers/csi-test/mock/service"
)

func main() {
	if err := serve(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(socket, name string) error {
	mock := service.New(service.Config{DriverName: name, EnableTopology: true})
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	served := driver.NewCSIDriver(&driver.CSIDriverServers{Controller: mock, Identity: mock, Node: mock})
	if err := served.Start(listener, nil); err != nil {
		return err
	}
	stopped := make(chan os.Signal, 1)
	signal.Notify(stopped, syscall.SIGTERM, syscall.SIGINT)
	<-stopped
	served.Stop()
	return nil
}
