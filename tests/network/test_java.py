"""A Java program, which asks no variable for a proxy: by name, over HTTP, TLS and a socket.

Registered when the machine has a JDK.
"""

from test_clients import DNS, HELLO, SERVERS
from worlds import NetworkCase

PROGRAM = """
import java.io.*;
import java.net.*;
import java.net.http.*;
import java.nio.charset.StandardCharsets;

public class Net {
    static String all(InputStream in) throws IOException {
        return new String(in.readAllBytes(), StandardCharsets.UTF_8).trim();
    }

    static String connection(String url) throws Exception {
        return all(new URL(url).openConnection().getInputStream());
    }

    static String client(String url) throws Exception {
        var request = HttpRequest.newBuilder(URI.create(url)).build();
        var client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        return client.send(request, HttpResponse.BodyHandlers.ofString()).body().trim();
    }

    static String socket(String host, int port) throws Exception {
        try (var socket = new Socket(host, port)) {
            socket.getOutputStream().write("select 1".getBytes(StandardCharsets.UTF_8));
            var in = new BufferedReader(new InputStreamReader(socket.getInputStream()));
            return in.readLine();
        }
    }

    public static void main(String[] argv) throws Exception {
        for (String what : argv) {
            String[] words = what.split("=", 2);
            try {
                System.out.println(
                    words[0].equals("connection") ? connection(words[1])
                    : words[0].equals("client")   ? client(words[1])
                                                  : socket(words[1], 5432));
            } catch (Exception e) {
                Throwable root = e;
                while (root.getCause() != null)
                    root = root.getCause();
                System.out.println(root.getClass().getSimpleName());
            }
        }
    }
}
"""
JAVA = "java -XX:TieredStopAtLevel=1 -Xshare:auto -Xmx96m -XX:+UseSerialGC"


class Java(NetworkCase):
    def java(self, *what, options=""):
        with open(self.ws + "/Net.java", "w") as out:
            out.write(PROGRAM)
        return self.sh("javac -J-XX:TieredStopAtLevel=1 -J-XX:+UseSerialGC Net.java 2>&1 && "
                       "%s %s Net %s" % (JAVA, options, " ".join(what))).splitlines()

    def test_it_reaches_what_is_allowed_and_nothing_else(self):
        self.assertEqual(
            self.java("connection=http://example.test/file.txt", "client=http://example.test/file.txt",
                      "socket=example.test", "connection=http://evil.test/file.txt",
                      "socket=evil.test", "socket=45.33.10.66"),
            [HELLO.strip(), HELLO.strip(), "database says hello", "UnknownHostException",
             "UnknownHostException", "SocketException"])
        self.assertIn(("network.not_allowed", "name evil.test"), self.denials())
        self.assertIn(("network.not_allowed", "CONNECT 45.33.10.66:5432"), self.denials())
        self.assertEqual(self.internet.log()["hellos"], [[5432, "select 1"]])
        self.assert_left(DNS, ("tcp", SERVERS, 80), ("tcp", SERVERS, 5432))

    def test_over_tls(self):
        self.sh("keytool -importcert -noprompt -alias a -file cert.pem -keystore trust "
                "-storepass changeit 2>&1")
        self.assertEqual(
            self.java("connection=https://example.test/file.txt",
                      "client=https://example.test:8443/file.txt",
                      options="-Djavax.net.ssl.trustStore=trust "
                              "-Djavax.net.ssl.trustStorePassword=changeit"),
            [HELLO.strip()] * 2)
        self.assert_left(DNS, ("tcp", SERVERS, 443), ("tcp", SERVERS, 8443))
