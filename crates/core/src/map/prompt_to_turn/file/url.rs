//! The two kinds of address that hold or name a file here: `data:` and `file:`.

use super::content;

/// The scheme of an address in lower case; empty if it has none.
pub(super) fn scheme(url: &str) -> String {
    url.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase()).unwrap_or_default()
}

/// Media type and bytes of a data URL.
pub(super) fn data(url: &str) -> Option<(String, Vec<u8>)> {
    let (head, body) = url.get("data:".len()..)?.split_once(',')?;
    let media_type = head.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_base64 =
        head.rsplit(';').next().is_some_and(|w| w.trim().eq_ignore_ascii_case("base64"));
    let bytes = percent_decoded(body);
    match is_base64 {
        true => Some((media_type, content::base64(std::str::from_utf8(&bytes).ok()?)?)),
        false => Some((media_type, bytes)),
    }
}

/// The local path of a file URL; none if it names another host.
pub(super) fn file_path(url: &str) -> Option<String> {
    let rest = url.get("file:".len()..)?;
    let path = match rest.strip_prefix("//") {
        Some(rest) => {
            let slash = rest.find('/')?;
            let host = &rest[..slash];
            (host.is_empty() || host.eq_ignore_ascii_case("localhost")).then(|| &rest[slash..])?
        }
        None => rest.starts_with('/').then_some(rest)?,
    };
    let path = String::from_utf8(percent_decoded(path)).ok()?;
    let drive =
        path.as_bytes().get(1..3).is_some_and(|b| b[0].is_ascii_alphabetic() && b[1] == b':');
    Some(if drive { path[1..].to_owned() } else { path })
}

/// A `%` that starts no escape stands for itself, as browsers read it.
fn percent_decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let hex = |at: usize| bytes.get(at).and_then(|b| char::from(*b).to_digit(16));
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match (byte, hex(at + 1), hex(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                decoded.push((high * 16 + low) as u8);
                at += 3;
            }
            _ => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_urls_become_paths() {
        #[rustfmt::skip]
        let table = [
            ("file:///a/b%20c.png",      Some("/a/b c.png")),
            ("file://localhost/a.png",   Some("/a.png")),
            ("FILE:/a.png",              Some("/a.png")),
            ("file:///C:/a.png",         Some("C:/a.png")),
            ("file:///50%/a.png",        Some("/50%/a.png")),
            ("file://server/share.png",  None),
            ("file:a.png",               None),
            ("file:///%ff",              None),
        ];
        for (url, want) in table {
            assert_eq!(file_path(url).as_deref(), want, "{url}");
        }
    }

    #[test]
    fn data_urls_become_bytes() {
        #[rustfmt::skip]
        let table = [
            ("data:image/PNG;base64,aGk=",           Some(("image/png", "hi"))),
            ("data:text/plain;charset=utf-8,a%20b",  Some(("text/plain", "a b"))),
            ("DATA:;base64,aGk%3D",                  Some(("", "hi"))),
            ("data:,",                               Some(("", ""))),
            ("data:image/png;base64,a",              None),
            ("data:image/png",                       None),
        ];
        for (url, want) in table {
            let want = want.map(|(media, text)| (media.to_owned(), text.as_bytes().to_vec()));
            assert_eq!(data(url), want, "{url}");
        }
    }
}
