package servers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// goModule installs a program of a Go module, as a requirement of a module made
// for it: go install refuses modules that replace others.
func goModule(module, version, pkg string) func(dir string) error {
	return func(dir string) error {
		text := fmt.Sprintf("module server\n\ngo 1.26.0\n\nrequire %s %s\n", module, version)
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o644); err != nil {
			return err
		}
		return quietly(dir, []string{"GOWORK=off"}, "go", "build", "-mod=mod", "-o", "server", module+pkg)
	}
}

func goaws(dir, data, port string) (*exec.Cmd, error) {
	file := filepath.Join(data, "goaws.yaml")
	text := fmt.Sprintf("Local:\n  Host: localhost\n  Port: %s\n  Region: us-east-1\n  AccountId: \"000000000000\"\n", port)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return nil, err
	}
	return exec.Command(filepath.Join(dir, "server"), "-config", file, "-loglevel", "error", "Local"), nil
}

// installFauxqs installs a Node.js with it: it needs one that has SQLite.
func installFauxqs(dir string) error {
	return quietly(dir, nil, "npm", "install", "--no-audit", "--no-fund", "--prefix", dir, "fauxqs@2.4.1", "node@22.23.3")
}

func fauxqs(persistent bool) func(dir, data, port string) (*exec.Cmd, error) {
	return func(dir, data, port string) (*exec.Cmd, error) {
		options := fmt.Sprintf("{port: %s, logger: false}", port)
		if persistent {
			options = fmt.Sprintf("{port: %s, logger: false, dataDir: %q}", port, data)
		}
		cmd := exec.Command(filepath.Join(dir, "node_modules", "node", "bin", "node"),
			"--input-type=module", "--eval", `import { startFauxqs } from "fauxqs"; await startFauxqs(`+options+`);`)
		cmd.Dir = dir
		return cmd, nil
	}
}

func installMoto(dir string) error {
	return quietly(dir, nil, "python3", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", filepath.Join(dir, "lib"), "moto[server]==5.2.1")
}

func moto(dir, _, port string) (*exec.Cmd, error) {
	cmd := exec.Command("python3", "-c", "import sys; from moto.server import main; sys.exit(main())", "-H", "127.0.0.1", "-p", port)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(dir, "lib"))
	return cmd, nil
}

const elasticMQProject = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>bench</groupId>
  <artifactId>elasticmq</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.elasticmq</groupId>
      <artifactId>elasticmq-server_2.13</artifactId>
      <version>1.6.14</version>
    </dependency>
  </dependencies>
</project>
`

func installElasticMQ(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "pom.xml"), []byte(elasticMQProject), 0o644); err != nil {
		return err
	}
	return quietly(dir, nil, "mvn", "--quiet", "--batch-mode", "dependency:copy-dependencies", "-DoutputDirectory=lib")
}

func elasticMQ(persistent bool) func(dir, data, port string) (*exec.Cmd, error) {
	return func(dir, data, port string) (*exec.Cmd, error) {
		file := filepath.Join(data, "elasticmq.conf")
		text := fmt.Sprintf(`include classpath("application.conf")
node-address { host = "127.0.0.1", port = %[1]s }
rest-sqs { bind-hostname = "127.0.0.1", bind-port = %[1]s }
rest-stats { enabled = false }
aws { region = "us-east-1" }
pekko.loglevel = "WARNING"
messages-storage { enabled = %[2]t, uri = "jdbc:h2:%[3]s/messages" }
`, port, persistent, data)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return nil, err
		}
		return exec.Command("java", "-Dconfig.file="+file, "-cp", filepath.Join(dir, "lib", "*"), "org.elasticmq.server.Main"), nil
	}
}
