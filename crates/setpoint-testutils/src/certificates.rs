//! A certificate authority for one test.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};

/// Signs certificates for servers on this machine.
#[derive(Debug)]
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key, both as PEM.
#[derive(Debug, Clone)]
pub struct Certificate {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

impl Authority {
    /// Makes an authority that nobody else knows.
    pub fn new() -> Self {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name.push(DnType::CommonName, "setpoint tests");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().expect("a key can be generated");
        let issuer = CertifiedIssuer::self_signed(parameters, key).expect("an authority can be made");
        Self { issuer }
    }

    /// Its own certificate, as PEM.
    pub fn certificate(&self) -> String {
        self.issuer.pem()
    }

    /// Signs a certificate for a server on the loopback interface.
    pub fn server(&self) -> Certificate {
        let names = ["127.0.0.1", "localhost", "kubernetes.default.svc"].map(str::to_owned);
        let parameters = CertificateParams::new(names).expect("these names are valid");
        let key = KeyPair::generate().expect("a key can be generated");
        let certificate = parameters.signed_by(&key, &self.issuer).expect("a certificate can be signed");
        Certificate { certificate: certificate.pem(), key: key.serialize_pem() }
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}
