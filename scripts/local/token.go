package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"holdfast/scripts/internal/gateway"
	"holdfast/shared/topology"
)

const (
	tokenLifeDefault = time.Hour
	// tokenLifeMax is a bound for a token that nobody can take back.
	tokenLifeMax = 30 * 24 * time.Hour
)

// printToken is the sub-command token. It prints the token and nothing else, so that a
// shell can keep it in a variable. The signing key is made if there is none yet; a gateway
// that starts later on the same data folder uses the same one.
func printToken(arguments []string, out io.Writer) error {
	flags := flag.NewFlagSet("local "+tokenCommand, flag.ContinueOnError)
	subject := flags.String("sub", "", "who the token is for, such as U-17")
	scopes := flags.String("scope", "", "scopes, joined by commas: "+strings.Join(scopeNames(), ", "))
	groups := flags.String("group", "", "groups, joined by commas; an operator's is ops")
	life := flags.Duration("ttl", tokenLifeDefault, "how long the token is valid")
	data := flags.String("data", "", "data folder of the local run (default: the folder "+dataFolderName+" of the module)")
	if err := parse(flags, arguments, out); err != nil {
		return err
	}
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("token: unknown argument %q", flags.Arg(0))
	case *subject == "":
		return errors.New("token: -sub is needed, such as -sub U-17")
	case *life <= 0 || *life > tokenLifeMax:
		return fmt.Errorf("token: -ttl must be more than 0 and at most %s", tokenLifeMax)
	}
	request := gateway.TokenRequest{Subject: *subject, Life: *life, Groups: split(*groups)}
	for _, name := range split(*scopes) {
		if !slices.Contains(scopeNames(), name) {
			return fmt.Errorf("token: there is no scope %q; the scopes are %s", name, strings.Join(scopeNames(), ", "))
		}
		request.Scopes = append(request.Scopes, topology.Scope(name))
	}
	folder, err := dataFolder(*data)
	if err != nil {
		return err
	}
	issuer, err := gateway.LoadIssuer(folder)
	if err != nil {
		return err
	}
	token, err := issuer.Token(request, time.Now())
	if err != nil {
		return err
	}
	fmt.Fprintln(out, token)
	return nil
}

func scopeNames() []string {
	var names []string
	for _, scope := range topology.Scopes() {
		names = append(names, string(scope))
	}
	return names
}

// split separates a list by commas. An empty text has no element.
func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}
