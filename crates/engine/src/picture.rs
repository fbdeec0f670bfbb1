//! Pictures as a model gets them: recognised, small enough, as a data URL.

use std::io::{self, Cursor};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::{DynamicImage, ImageDecoder as _, ImageFormat, ImageReader, Limits};

use crate::item::Content;
use crate::plain_file::{PlainFileError, PlainFileReader};

/// The longest side a model is shown.
pub const MAX_SIDE: u32 = 2048;

/// The biggest file that is read.
pub const MAX_BYTES: u64 = 32 << 20;

/// The longest side of a picture that is opened at all: a few kilobytes can claim to be huge.
const MAX_OPENED_SIDE: u32 = 20_000;

/// What a picture may take in memory once it is opened.
const MAX_MEMORY: u64 = 512 << 20;

/// Beyond this a picture that is small enough in pixels is packed anew.
const MAX_UNTOUCHED: usize = 8 << 20;

const JPEG_QUALITY: u8 = 85;

/// A picture for a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// `image/png` …
    pub media_type: &'static str,
    /// Its bytes in that format.
    pub bytes: Vec<u8>,
    /// In pixels.
    pub width: u32,
    /// In pixels.
    pub height: u32,
}

/// How big a picture may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Detail {
    /// At most [`MAX_SIDE`] a side.
    #[default]
    High,
    /// As it is.
    Original,
}

impl Detail {
    /// Reads the word of a call; none means [`Self::High`].
    pub fn of(word: Option<&str>) -> Result<Self, PictureError> {
        match word {
            None | Some("high") => Ok(Self::High),
            Some("original") => Ok(Self::Original),
            Some(other) => Err(PictureError::Detail(other.to_owned())),
        }
    }

    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Original => "original",
        }
    }
}

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    /// The file cannot be read.
    #[error("unable to locate image at `{}`: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// The path is a folder, a pipe, a device.
    #[error("image path `{}` is not a file", .0.display())]
    NoFile(PathBuf),
    /// The path is hidden.
    #[error("image path `{}` is hidden; use another file", .0.display())]
    Hidden(PathBuf),
    /// It is too long.
    #[error("unable to process image: it has more than {MAX_BYTES} bytes; make it smaller first")]
    TooLong,
    /// It is none, or none we know.
    #[error("unable to process image: it is none that can be shown; use PNG, JPEG, GIF or WebP")]
    Unknown,
    /// It claims to be too big to open.
    #[error("unable to process image: it is too big to open; make it smaller first")]
    TooBig,
    /// It is broken.
    #[error("unable to process image: it is broken: {0}")]
    Broken(String),
    /// The call asks for a detail there is not.
    #[error("`detail` is `high` or `original`, not `{0}`; leave it out to get `high`")]
    Detail(String),
}

impl Picture {
    /// Reads a file.
    pub fn read(
        path: &Path,
        detail: Detail,
        reader: &PlainFileReader,
    ) -> Result<Self, PictureError> {
        let bytes = reader.read(path, MAX_BYTES).map_err(|error| match error {
            PlainFileError::Io(cause) => PictureError::Read { path: path.to_owned(), cause },
            PlainFileError::NotPlain(path) => PictureError::NoFile(path),
            PlainFileError::Hidden(path) => PictureError::Hidden(path),
            PlainFileError::TooLong(_) => PictureError::TooLong,
        })?;
        Self::of(bytes, detail)
    }

    /// Takes bytes that are a picture. One that is small enough stays as it is, byte for byte.
    pub fn of(bytes: Vec<u8>, detail: Detail) -> Result<Self, PictureError> {
        if bytes.len() as u64 > MAX_BYTES {
            return Err(PictureError::TooLong);
        }
        let (format, image) = open(&bytes)?;
        let (width, height) = (image.width(), image.height());
        let fits = width.max(height) <= MAX_SIDE && bytes.len() <= MAX_UNTOUCHED;
        if fits || detail == Detail::Original {
            return Ok(Self { media_type: media_type(format), bytes, width, height });
        }
        let small = match width.max(height) > MAX_SIDE {
            true => image.resize(MAX_SIDE, MAX_SIDE, FilterType::Triangle),
            false => image,
        };
        let (format, bytes) = packed(&small, format)?;
        let (width, height) = (small.width(), small.height());
        Ok(Self { media_type: media_type(format), bytes, width, height })
    }

    /// As a URL that holds it.
    pub fn url(&self) -> String {
        format!("data:{};base64,{}", self.media_type, STANDARD.encode(&self.bytes))
    }

    /// As a piece of a message or of a tool's answer.
    pub fn content(&self, detail: Detail) -> Content {
        Content::InputImage { image_url: self.url(), detail: Some(detail.as_str().to_owned()) }
    }
}

/// Opens all of it, so that a model is not sent what its server will refuse.
fn open(bytes: &[u8]) -> Result<(ImageFormat, DynamicImage), PictureError> {
    let format = image::guess_format(bytes).map_err(|_| PictureError::Unknown)?;
    if !known(format) {
        return Err(PictureError::Unknown);
    }
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_OPENED_SIDE);
    limits.max_image_height = Some(MAX_OPENED_SIDE);
    limits.max_alloc = Some(MAX_MEMORY);
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(wrong)?;
    // Not every decoder asks the limits before it makes room.
    if decoder.total_bytes() > MAX_MEMORY {
        return Err(PictureError::TooBig);
    }
    let turned = decoder.orientation().map_err(wrong)?;
    let mut image = DynamicImage::from_decoder(decoder).map_err(wrong)?;
    image.apply_orientation(turned);
    Ok((format, image))
}

fn known(format: ImageFormat) -> bool {
    matches!(format, ImageFormat::Png | ImageFormat::Jpeg | ImageFormat::Gif | ImageFormat::WebP)
}

/// Photographs stay JPEG; all else becomes PNG, which loses nothing.
fn packed(
    image: &DynamicImage,
    format: ImageFormat,
) -> Result<(ImageFormat, Vec<u8>), PictureError> {
    let mut bytes = Vec::new();
    if format == ImageFormat::Jpeg {
        let encoder = JpegEncoder::new_with_quality(&mut bytes, JPEG_QUALITY);
        image.to_rgb8().write_with_encoder(encoder).map_err(wrong)?;
        return Ok((format, bytes));
    }
    image.write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png).map_err(wrong)?;
    Ok((ImageFormat::Png, bytes))
}

fn media_type(format: ImageFormat) -> &'static str {
    format.to_mime_type()
}

fn wrong(err: image::ImageError) -> PictureError {
    match err {
        image::ImageError::Limits(_) => PictureError::TooBig,
        other => PictureError::Broken(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Vec::new();
        let image = DynamicImage::ImageRgb8(image::RgbImage::from_fn(width, height, |x, y| {
            image::Rgb([(x % 256) as u8, (y % 256) as u8, 7])
        }));
        image.write_to(&mut Cursor::new(&mut bytes), format).unwrap();
        bytes
    }

    #[test]
    fn a_small_picture_is_passed_on_untouched() {
        let formats = [
            (ImageFormat::Png, "image/png"),
            (ImageFormat::Jpeg, "image/jpeg"),
            (ImageFormat::Gif, "image/gif"),
            (ImageFormat::WebP, "image/webp"),
        ];
        for (format, media_type) in formats {
            let bytes = bytes(20, 10, format);
            let picture = Picture::of(bytes.clone(), Detail::High).unwrap();
            assert_eq!(
                picture,
                Picture { media_type, bytes: bytes.clone(), width: 20, height: 10 }
            );
            let url = format!("data:{media_type};base64,{}", STANDARD.encode(bytes));
            let detail = Some("high".to_owned());
            assert_eq!(
                picture.content(Detail::High),
                Content::InputImage { image_url: url, detail }
            );
        }
    }

    #[test]
    fn a_big_picture_is_made_smaller_unless_the_original_is_wanted() {
        for (format, media_type) in [
            (ImageFormat::Png, "image/png"),
            (ImageFormat::Jpeg, "image/jpeg"),
            (ImageFormat::Gif, "image/png"),
            (ImageFormat::WebP, "image/png"),
        ] {
            let bytes = bytes(3000, 30, format);
            let picture = Picture::of(bytes.clone(), Detail::High).unwrap();
            assert_eq!((picture.width, picture.height), (2048, 20), "{format:?}");
            assert_eq!(picture.media_type, media_type);
            let (_, image) = open(&picture.bytes).unwrap();
            assert_eq!((image.width(), image.height()), (2048, 20));
            let original = Picture::of(bytes.clone(), Detail::Original).unwrap();
            assert_eq!((original.width, original.bytes), (3000, bytes));
        }
    }

    #[test]
    fn a_bomb_is_not_opened() {
        // A PNG of a few bytes whose head claims 60 000 pixels a side.
        let mut bomb = bytes(1, 1, ImageFormat::Png);
        bomb[16..24].copy_from_slice(&[0, 0, 0xea, 0x60, 0, 0, 0xea, 0x60]);
        let crc = crc32(&bomb[12..29]);
        bomb[29..33].copy_from_slice(&crc.to_be_bytes());
        assert!(matches!(Picture::of(bomb.clone(), Detail::High), Err(PictureError::TooBig)));
        // 20 000 a side is allowed, yet not both.
        bomb[16..24].copy_from_slice(&[0, 0, 0x4e, 0x20, 0, 0, 0x4e, 0x20]);
        let crc = crc32(&bomb[12..29]);
        bomb[29..33].copy_from_slice(&crc.to_be_bytes());
        assert!(matches!(Picture::of(bomb, Detail::Original), Err(PictureError::TooBig)));
    }

    fn crc32(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(u32::MAX, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
                if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 }
            })
        })
    }

    #[test]
    fn what_is_no_picture_is_refused_with_a_reason() {
        let whole = bytes(200, 200, ImageFormat::Png);
        for cut in [9, 33, 50, whole.len() / 2] {
            let broken = Picture::of(whole[..cut].to_vec(), Detail::High);
            assert!(matches!(broken, Err(PictureError::Broken(_))), "{cut}: {broken:?}");
        }
        for text in ["", "hello", "<svg xmlns='http://www.w3.org/2000/svg'/>"] {
            let none = Picture::of(text.as_bytes().to_vec(), Detail::High);
            assert!(matches!(none, Err(PictureError::Unknown)), "{text}");
        }
    }

    #[test]
    fn details_are_two() {
        assert_eq!(Detail::of(None).unwrap(), Detail::High);
        assert_eq!(Detail::of(Some("original")).unwrap(), Detail::Original);
        assert!(matches!(Detail::of(Some("low")), Err(PictureError::Detail(_))));
    }

    #[test]
    fn a_file_is_read_and_its_absence_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dot.png");
        std::fs::write(&path, bytes(2, 2, ImageFormat::Png)).unwrap();
        let reader = PlainFileReader::default();
        let read = |path: &Path| Picture::read(path, Detail::High, &reader);
        assert_eq!(read(&path).unwrap().width, 2);
        let none = read(&folder.path().join("none")).unwrap_err();
        assert!(matches!(none, PictureError::Read { .. }), "{none}");
        let folder = read(folder.path()).unwrap_err();
        assert!(matches!(folder, PictureError::NoFile(_)), "{folder}");
        let huge = tempfile::NamedTempFile::new().unwrap();
        huge.as_file().set_len(MAX_BYTES + 1).unwrap();
        let huge = read(huge.path()).unwrap_err();
        assert!(matches!(huge, PictureError::TooLong), "{huge}");
    }
}
