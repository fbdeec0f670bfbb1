//! Options that only change what is read or how it is shown.

/// The options of a program that are known to be harmless.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    /// Letters without a value, which may stand together.
    letters: &'static str,
    /// Letters with a value, in the same word or in the next.
    valued_letters: &'static str,
    /// Long names, separated by blanks. One that ends with `=` has a value, in the same word or
    /// in the next; one with `[=]` may have one in the same word.
    names: &'static str,
    /// How many words that are no options it may have.
    most_operands: usize,
}

const ANY: usize = usize::MAX;

const fn of(
    letters: &'static str,
    valued_letters: &'static str,
    names: &'static str,
    most_operands: usize,
) -> Options {
    Options { letters, valued_letters, names, most_operands }
}

#[rustfmt::skip]
const KNOWN: [(&str, Options); 22] = [
    ("base64", of("d", "w", "decode wrap=", 1)),
    ("cat", of("AbeEnstTuv", "", "number number-nonblank show-all show-ends show-nonprinting \
        show-tabs squeeze-blank", ANY)),
    ("cd", of("LP", "", "", 1)),
    ("cut", of("nsz", "bcdf", "bytes= characters= complement delimiter= fields= only-delimited \
        output-delimiter= zero-terminated", ANY)),
    ("grep", of("0123456789abcEFGHhIiLlnoPqRrsTUvwxyZz", "ABCDdefm", "after-context= \
        basic-regexp before-context= binary-files= byte-offset color[=] colour[=] context= count \
        dereference-recursive directories= exclude= exclude-dir= exclude-from= extended-regexp \
        file= files-with-matches files-without-match fixed-strings ignore-case include= \
        initial-tab invert-match label= line-buffered line-number line-regexp max-count= \
        no-filename no-ignore-case no-messages null null-data only-matching perl-regexp quiet \
        recursive regexp= silent text with-filename word-regexp", ANY)),
    ("head", of("0123456789qvz", "cn", "bytes= lines= quiet silent verbose zero-terminated", ANY)),
    ("id", of("aGgnruz", "", "group groups name real user zero", ANY)),
    ("ls", of("1AaBbCcdFfGgHhiklLmNnopQqRrSstUuvXxZ", "ITw", "all almost-all author \
        block-size= classify[=] color[=] directory escape format= full-time \
        group-directories-first hide= human-readable ignore= ignore-backups \
        indicator-style= inode literal no-group numeric-uid-gid quote-name \
        quoting-style= recursive reverse show-control-chars si size \
        sort= time= time-style= width= zero", ANY)),
    ("nl", of("p", "bdfhilnsvw", "body-numbering= line-increment= number-format= \
        number-separator= number-width= starting-line-number=", ANY)),
    ("numfmt", of("z", "d", "delimiter= field= format= from= from-unit= grouping header[=] \
        invalid= padding= round= suffix= to= to-unit=", ANY)),
    ("paste", of("sz", "d", "delimiters= serial zero-terminated", ANY)),
    ("pwd", of("LP", "", "logical physical", 0)),
    ("rg", of("0FHILNPSUachilnopqsuvwx.", "ABCEMTdefgjmrt", "after-context= before-context= \
        byte-offset case-sensitive color= colors= column context= count count-matches crlf \
        encoding= engine= file= files files-with-matches files-without-match fixed-strings \
        follow glob= heading hidden iglob= ignore-case include-zero invert-match json \
        line-number line-regexp max-columns= max-count= max-depth= max-filesize= multiline \
        multiline-dotall no-column no-config no-filename no-heading no-ignore no-ignore-vcs \
        no-line-number no-messages null null-data only-matching passthru pcre2 pretty quiet \
        regexp= replace= smart-case sort= sortr= stats text threads= trim type= type-list \
        type-not= unrestricted vimgrep with-filename word-regexp", ANY)),
    ("seq", of("w", "fs", "equal-width format= separator=", 3)),
    ("stat", of("Lftx", "c", "dereference file-system format= printf= terse", ANY)),
    ("tac", of("br", "s", "before regex separator=", ANY)),
    ("tail", of("0123456789qvz", "cn", "bytes= lines= quiet silent verbose zero-terminated", ANY)),
    ("tr", of("Ccdst", "", "complement delete squeeze-repeats truncate-set1", 2)),
    ("uname", of("aimnoprsv", "", "all hardware-platform kernel-name kernel-release \
        kernel-version machine nodename operating-system processor", 0)),
    // A second file is written to.
    ("uniq", of("cDdiuz", "fsw", "all-repeated[=] check-chars= count group[=] ignore-case \
        repeated skip-chars= skip-fields= unique zero-terminated", 1)),
    ("wc", of("LclmwC", "", "bytes chars lines max-line-length total= words", ANY)),
    ("which", of("a", "", "all", ANY)),
];

impl Options {
    /// Those of a program.
    pub(super) fn of(program: &str) -> Option<Self> {
        KNOWN.iter().find(|(name, _)| *name == program).map(|(_, options)| *options)
    }

    /// Whether there is nothing else among the arguments.
    pub(super) fn allow(self, arguments: &[String]) -> bool {
        let mut operands = 0;
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let takes_next = match argument.strip_prefix('-') {
                Some("-") => {
                    operands += rest.len();
                    break;
                }
                // A file like any other: the standard input, or the output where it comes second.
                None | Some("") => {
                    operands += 1;
                    Some(false)
                }
                Some(option) => match option.strip_prefix('-') {
                    Some(name) => self.takes_next(name),
                    None => self.letters_take_next(option),
                },
            };
            match takes_next {
                None => return false,
                Some(true) => {
                    rest.next();
                }
                Some(false) => {}
            }
        }
        operands <= self.most_operands
    }

    /// Whether a long option has its value in the next word; none for one that is not known.
    /// Shortened names are not: what they are short for changes with the version.
    fn takes_next(self, option: &str) -> Option<bool> {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option, None),
        };
        self.names.split_whitespace().find_map(|known| {
            if let Some(known) = known.strip_suffix("[=]") {
                return (known == name).then_some(false);
            }
            match known.strip_suffix('=') {
                Some(known) => (known == name).then_some(value.is_none()),
                None => (known == name && value.is_none()).then_some(false),
            }
        })
    }

    fn letters_take_next(self, letters: &str) -> Option<bool> {
        for (at, letter) in letters.char_indices() {
            if self.valued_letters.contains(letter) {
                return Some(at + letter.len_utf8() == letters.len());
            }
            if !self.letters.contains(letter) {
                return None;
            }
        }
        Some(false)
    }
}
