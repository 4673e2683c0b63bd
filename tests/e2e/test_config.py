"""What an operator can get wrong: each mistake is refused at start, by file, key and reason."""

import os

from support import Case


class Refused(Case):
    def refused_config(self, document, *needles):
        path = self.config(document)
        status, stderr = self.refused("--config", path)
        self.assertEqual(status, 78, stderr)
        for needle in (path, *needles):
            self.assertIn(needle, stderr)

    def workspace(self, **entry):
        return {"workspaces": {"demo": {"root": self.ws, **entry}}}

    def test_files_that_cannot_be_read(self):
        for path in (os.path.join(self.dir, "nope.json"), self.ws):
            with self.subTest(path=path):
                status, stderr = self.refused("--config", path)
                self.assertEqual(status, 78)
                self.assertIn(path, stderr)

    def test_a_fifo_does_not_hang_the_start(self):
        path = os.path.join(self.dir, "fifo.json")
        os.mkfifo(path)
        status, stderr = self.refused("--config", path)
        self.assertEqual(status, 78)
        self.assertIn(path, stderr)

    def test_the_variable_counts_like_the_option(self):
        path = self.config({"workspaces": {"demo": {"root": "/no/such/dir"}}})
        status, stderr = self.refused(env={"CODESPACE_CONFIG": path})
        self.assertEqual(status, 78)
        self.assertIn("workspaces.demo.root", stderr)

    def test_no_json(self):
        for text in ("", "{", "[]", "nonsense", '{"workspaces":{}} x', '{"a":1,"a":2}'):
            with self.subTest(text=text):
                self.refused_config(text)

    def test_unknown_keys(self):
        for document, key in (
            ({"workspace": {}}, "workspace"),
            (self.workspace(profle="read-only"), "profle"),
            (self.workspace(mounts=[{"path": "/opt", "write": True}]), "write"),
            ({"environments": {"x": {"kind": "host", "image": "y"}}}, "image"),
        ):
            with self.subTest(key=key):
                self.refused_config(document, key)

    def test_wrong_values(self):
        for entry in (
            {"profile": "host-admin"},
            {"profile": 5},
            {"network": "open"},
            {"approvals": "maybe"},
            {"sandbox": "none"},
            {"read": "some"},
            {"environment": "nowhere"},
            {"env": {"A": 5}},
            {"env": {"A B": "x"}},
            {"env": ["A=b"]},
            {"mounts": "/opt"},
            {"mounts": [{"path": "relative"}]},
            {"mounts": [{"path": "/no/such/place"}]},
            {"hide": ["relative"]},
        ):
            with self.subTest(entry=entry):
                self.refused_config(self.workspace(**entry), "demo", next(iter(entry)))

    def test_roots(self):
        self.write("file", "x")
        os.symlink(self.ws, os.path.join(self.dir, "link"))
        for root in ("relative/dir", "/no/such/dir", self.path("file"), "", "/", 5):
            with self.subTest(root=root):
                document = {"workspaces": {"demo": {"root": root}}}
                self.refused_config(document, "workspaces.demo.root")
        self.refused_config({"workspaces": {"demo": {}}}, "workspaces.demo", "root")

    def test_two_workspaces_on_one_directory(self):
        """Compared by the directory itself, not by its name."""
        os.symlink(self.ws, os.path.join(self.dir, "link"))
        for other in (self.ws, self.ws + "/.", os.path.join(self.dir, "link")):
            with self.subTest(other=other):
                self.refused_config(
                    {"workspaces": {"one": {"root": self.ws}, "two": {"root": other}}}, "two"
                )
        status, stderr = self.refused("--workspace", "a=" + self.ws, "--workspace", "b=" + self.ws)
        self.assertEqual(status, 78)
        self.assertIn("b", stderr)

    def test_options_that_are_no_workspace(self):
        for option in ("ws=/no/such/dir", "/no/such/dir", "ws=", ""):
            with self.subTest(option=option):
                status, stderr = self.refused("--workspace", option)
                self.assertIn(status, (64, 78))
                self.assertTrue(stderr.strip())

    def test_one_id_twice(self):
        other = self.make_dir("other")
        status, stderr = self.refused("--workspace", "a=" + self.ws, "--workspace", "a=" + other)
        self.assertEqual(status, 78)
        self.assertIn('"a"', stderr)

    def test_bad_ids(self):
        for name in ("", "a b", "../x", ".hidden", "x" * 65, "a/b"):
            with self.subTest(name=name):
                self.refused_config({"workspaces": {name: {"root": self.ws}}}, "workspaces")

    def test_a_file_that_its_own_commands_could_rewrite(self):
        path = self.write("config.json", '{"workspaces":{"ws":{"root":"%s",'
                          '"profile":"workspace-write"}}}' % self.ws)
        status, stderr = self.refused("--config", path)
        self.assertEqual(status, 78)
        self.assertIn(path, stderr)

    def test_a_file_that_everybody_may_write(self):
        path = self.config(self.workspace())
        os.chmod(path, 0o666)
        status, stderr = self.refused("--config", path)
        self.assertEqual(status, 78)
        self.assertIn(path, stderr)


class Accepted(Case):
    def test_the_default_id_is_the_directorys_name(self):
        client = self.start("--workspace", self.ws)
        self.assertEqual(client.call("workspace_info", workspace_id="ws")["root"], self.ws)

    def test_option_and_file_together(self):
        other = self.make_dir("other")
        config = self.config({"workspaces": {"one": {"root": self.ws}}})
        client = self.start("--config", config, "--workspace", "two=" + other)
        profiles = {
            name: client.call("workspace_info", workspace_id=name)["profile"]
            for name in ("one", "two")
        }
        self.assertEqual(profiles, {"one": "read-only", "two": "workspace-write"})

    def test_the_variable(self):
        config = self.config({"workspaces": {"one": {"root": self.ws}}})
        client = self.launch(env={"CODESPACE_CONFIG": config})
        client.initialize()
        self.assertEqual(client.call("workspace_info", workspace_id="one")["root"], self.ws)

    def test_a_root_that_is_a_link_is_told_by_its_real_name(self):
        link = os.path.join(self.dir, "link")
        os.symlink(self.ws, link)
        client = self.start("--workspace", "ws=" + link)
        self.assertEqual(client.call("workspace_info", workspace_id="ws")["root"], self.ws)

    def test_a_relative_directory_is_taken_from_here(self):
        client = self.start("--workspace", "ws=./ws")
        self.assertEqual(client.call("workspace_info", workspace_id="ws")["root"], self.ws)


if __name__ == "__main__":
    import unittest

    unittest.main()
