package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const token = "swy_bench-token-of-at-least-forty-characters-0123456789"

// process is a server that the bench started.
type process struct {
	cmd    *exec.Cmd
	url    string
	client *http.Client
}

// spawn starts a program whose first line of output holds {"url": …}.
func spawn(ctx context.Context, name string, args, environ []string) (*process, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = environ
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	var at struct {
		URL string `json:"url"`
	}
	if err != nil || json.Unmarshal(line, &at) != nil {
		p.stop()
		return nil, fmt.Errorf("%s did not start: %q", name, line)
	}
	p.url = at.URL
	return p, nil
}

// stop ends the process and waits for it.
func (p *process) stop() {
	_ = p.cmd.Process.Kill() // it may have ended
	_ = p.cmd.Wait()
	p.client.CloseIdleConnections()
}

// cpu is the CPU time that the process has used.
func (p *process) cpu() time.Duration {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// rss is the resident memory of the process in MB.
func (p *process) rss() float64 {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.Atoi(strings.Fields(rest)[0])
			return float64(kb) / 1024
		}
	}
	return 0
}

// call makes one request and gives the body of its answer.
func (p *process) call(ctx context.Context, method, path string, body any) ([]byte, error) {
	var in io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		in = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(ctx, method, p.url+path, in)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	res, err := p.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	if res.StatusCode >= 300 {
		return nil, fmt.Errorf("%s %s: %d %s", method, path, res.StatusCode, out)
	}
	return out, err
}

// perCall is the CPU time of one of n equal requests, in microseconds.
func (p *process) perCall(ctx context.Context, n int, path string) (float64, error) {
	before := p.cpu()
	for range n {
		if _, err := p.call(ctx, http.MethodGet, path, nil); err != nil {
			return 0, err
		}
	}
	return float64((p.cpu() - before).Microseconds()) / float64(n), nil
}

// each runs fn for 0…n-1 on several goroutines.
func each(n int, fn func(int) error) error {
	var wg sync.WaitGroup
	var once sync.Once
	var first error
	for worker := range 32 {
		wg.Go(func() {
			for i := worker; i < n; i += 32 {
				if err := fn(i); err != nil {
					once.Do(func() { first = err })
					return
				}
			}
		})
	}
	wg.Wait()
	return first
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// serveBare answers health's bytes with nothing but net/http.
func serveBare() int {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return 1
	}
	fmt.Printf("{\"url\":\"http://%s\"}\n", l.Addr())
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"data":{"status":"ok"}}`) // a client that left is its own loss
	})}
	if s.Serve(l) != nil {
		return 1
	}
	return 0
}

// lines prints the lines of each package, tests and generated files apart.
func lines() error {
	count := map[string]int{}
	err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte("DO NOT EDIT")) {
			return err
		}
		count[filepath.Dir(path)] += bytes.Count(data, []byte{'\n'})
		return err
	})
	fmt.Println("\nlines of packages:")
	for _, dir := range slices.Sorted(keys(count)) {
		fmt.Printf("  %-28s %6d\n", dir, count[dir])
	}
	return err
}

func keys(m map[string]int) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}
