"""Certificates for TLS tests, made by openssl: an authority, and servers with valid and invalid certificates."""
import pathlib
import ssl
import subprocess


def openssl(*arguments, folder):
    done = subprocess.run(["openssl", *arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"openssl {' '.join(arguments)}\n{done.stderr}")


class Certificates:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "ca.cnf").write_text("[ca]\ndefault_ca = it\n[it]\ndatabase = index.txt\nnew_certs_dir = .\nserial = serial\n"
                                            "default_md = sha256\npolicy = any\ncopy_extensions = copy\nunique_subject = no\n"
                                            "[any]\ncommonName = supplied\n")
        (self.folder / "index.txt").write_text("")
        (self.folder / "serial").write_text("1000\n")
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=tests",
                "-days", "3650", "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign",
                folder=folder)

    @property
    def authority(self):
        return str(self.folder / "ca.pem")

    def server(self, name, alternative="IP:127.0.0.1,DNS:localhost", dates=("20250101000000Z", "20491231000000Z")):
        """The TLS context of a server with this certificate."""
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}",
                "-addext", f"subjectAltName={alternative}", folder=self.folder)
        openssl("ca", "-config", "ca.cnf", "-batch", "-notext", "-cert", "ca.pem", "-keyfile", "ca.key", "-in", f"{name}.csr",
                "-out", f"{name}.pem", "-startdate", dates[0], "-enddate", dates[1], folder=self.folder)
        return self.context(name)

    def self_signed(self, name="alone"):
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj",
                f"/CN={name}", "-days", "3650", "-addext", "subjectAltName=IP:127.0.0.1", folder=self.folder)
        return self.context(name)

    def context(self, name):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / f"{name}.pem", self.folder / f"{name}.key")
        return context


def old(context):
    """The same server with TLS 1.1 and nothing newer."""
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    return context
