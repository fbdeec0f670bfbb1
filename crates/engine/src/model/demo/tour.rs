//! The tour: plan, list, read, edit, ask, report; one step for each answer.

use serde_json::{Value, json};

use super::super::{ModelRequest, ToolSpec};
use super::say;
use super::scene::{Ended, Scene, shortened};
use crate::item::{CustomCall, FunctionCall, Item};

const SETTINGS: &str = "To talk to a real model, name one in `config.toml` in your Codex home:\n\n\
    ```toml\nmodel = \"MODEL\"\nmodel_provider = \"mine\"\n\n[model_providers.mine]\n\
    name = \"My server\"\nbase_url = \"http://localhost:11434/v1\"\nenv_key = \"MY_KEY\"\n\
    wire_api = \"chat\"\n```\n\n`wire_api` may be `responses` too. `bindery doctor` tells what is \
    set.";

/// Steps of the tour that call a tool, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Plan,
    List,
    Read,
    Edit,
    Ask,
    Tick,
}

const STEPS: [Step; 6] = [Step::Plan, Step::List, Step::Read, Step::Edit, Step::Ask, Step::Tick];

/// The next answer to a person.
pub(super) fn answer(request: &ModelRequest) -> Vec<Item> {
    let tour = Tour { scene: Scene::new(request) };
    if tour.scene.earlier > 0 && !wants_again(&tour.scene.asked) {
        return vec![say(&tour.short_answer())];
    }
    if tour.shell().is_none() && tour.scene.tool("apply_patch").is_none() {
        return vec![say(&format!("{}\n\n{SETTINGS}", tour.greeting()))];
    }
    tour.next().unwrap_or_else(|| vec![say(&tour.report())])
}

struct Tour<'a> {
    scene: Scene<'a>,
}

impl Tour<'_> {
    /// The first step that is not yet done; none when it is time to report.
    fn next(&self) -> Option<Vec<Item>> {
        let denied = STEPS.iter().any(|step| self.ended(*step) == Some(Ended::Denied));
        let open = |step: &&Step| {
            let goes_on = !denied || **step == Step::Tick;
            goes_on && self.ended(**step).is_none()
        };
        STEPS.iter().filter(open).find_map(|step| {
            let call = self.call(*step)?;
            Some(self.words(*step).map(|text| say(&text)).into_iter().chain([call]).collect())
        })
    }

    fn words(&self, step: Step) -> Option<String> {
        let is_first = STEPS.iter().all(|step| self.ended(*step).is_none());
        match step {
            Step::Plan => Some(format!("{} First a plan.", self.greeting())),
            Step::List if is_first => Some(format!("{} First I look around.", self.greeting())),
            Step::List => Some("I look around.".to_owned()),
            Step::Read => Some(format!("I read `{}`.", self.to_read()?)),
            Step::Edit => Some(format!("I write `{}`, a new file.", self.file())),
            Step::Ask => Some(
                "Now a command that leaves the sandbox, so that you see how you are asked. Say no, \
                 if you like: I will take it."
                    .to_owned(),
            ),
            Step::Tick => None,
        }
    }

    fn call(&self, step: Step) -> Option<Item> {
        match step {
            Step::Plan => self.plan(step, ["in_progress", "pending", "pending", "pending"]),
            Step::List => self.command(step, "ls -lAS", None),
            Step::Read => {
                let name = self.to_read()?;
                let quoted = shlex::try_quote(&name).ok()?;
                self.command(step, &format!("head -n 20 -- {quoted}"), None)
            }
            Step::Edit => self.patch(step),
            Step::Ask => self.command(
                step,
                "uname -s",
                Some("The demo asks to run a harmless command outside the sandbox."),
            ),
            Step::Tick => {
                self.ended(Step::Plan)?;
                let done = |step| match self.ended(step) {
                    Some(Ended::Well(_)) => "completed",
                    _ => "pending",
                };
                let states = [Step::List, Step::Read, Step::Edit, Step::Ask].map(done);
                self.plan(step, states)
            }
        }
    }

    fn plan(&self, step: Step, states: [&str; 4]) -> Option<Item> {
        self.scene.tool("update_plan")?;
        let steps = [
            "List the files".to_owned(),
            "Read one of them".to_owned(),
            "Write a file".to_owned(),
            "Ask before a command".to_owned(),
        ];
        let plan: Vec<Value> = steps
            .iter()
            .zip(states)
            .map(|(step, status)| json!({ "step": step, "status": status }))
            .collect();
        Some(self.function("update_plan", json!({ "plan": plan }), step))
    }

    /// The shell tool that is offered, by name.
    fn shell(&self) -> Option<&'static str> {
        let names = ["exec_command", "shell_command", "shell"];
        names.into_iter().find(|name| self.scene.tool(name).is_some())
    }

    fn command(&self, step: Step, script: &str, escalated: Option<&str>) -> Option<Item> {
        let tool = self.shell()?;
        let mut arguments = match tool {
            "exec_command" => json!({ "cmd": script }),
            "shell_command" => json!({ "command": script }),
            _ => json!({ "command": ["bash", "-lc", script] }),
        };
        if let Some(why) = escalated {
            arguments["sandbox_permissions"] = json!("require_escalated");
            arguments["justification"] = json!(why);
        }
        Some(self.function(tool, arguments, step))
    }

    fn patch(&self, step: Step) -> Option<Item> {
        let lines = [
            "# Bindery demo".to_owned(),
            String::new(),
            "Bindery's demo model wrote this file. No real model was asked.".to_owned(),
            String::new(),
            format!("- You said: {}", shortened(&self.scene.asked, 200)),
            format!("- Files here: {}", self.files().len()),
            String::new(),
            "You may delete it.".to_owned(),
        ];
        let lines: String = lines.iter().map(|line| format!("+{line}\n")).collect();
        let file = self.file();
        let input = format!("*** Begin Patch\n*** Add File: {file}\n{lines}*** End Patch");
        match self.scene.tool("apply_patch")? {
            ToolSpec::Freeform { name, .. } => Some(Item::CustomToolCall(CustomCall {
                id: None,
                name: name.clone(),
                input,
                call_id: self.call_id(step),
                status: None,
                extra_content: None,
            })),
            _ => Some(self.function("apply_patch", json!({ "input": input }), step)),
        }
    }

    fn function(&self, name: &str, arguments: Value, step: Step) -> Item {
        Item::FunctionCall(FunctionCall {
            id: None,
            name: name.to_owned(),
            namespace: None,
            arguments: arguments.to_string(),
            call_id: self.call_id(step),
            extra_content: None,
        })
    }

    /// Unlike those of earlier tours in the same thread.
    fn call_id(&self, step: Step) -> String {
        format!("demo_{}_{}", self.scene.earlier + 1, format!("{step:?}").to_lowercase())
    }

    fn ended(&self, step: Step) -> Option<Ended> {
        self.scene.ended(&self.call_id(step))
    }

    /// Names and sizes of the files here, largest first, as `ls -lAS` tells them.
    fn files(&self) -> Vec<String> {
        let Some(Ended::Well(listing)) = self.ended(Step::List) else { return Vec::new() };
        let file = |line: &str| {
            line.starts_with('-').then_some(())?;
            let mut words = line.split_ascii_whitespace();
            let words = words.by_ref().skip(8).collect::<Vec<_>>();
            (!words.is_empty()).then(|| words.join(" "))
        };
        listing.lines().filter_map(file).collect()
    }

    /// The README, else the largest file that looks like text.
    fn to_read(&self) -> Option<String> {
        let files = self.files();
        let is_readme = |name: &&String| name.to_lowercase().starts_with("readme");
        let readme = files.iter().find(is_readme);
        readme.or_else(|| files.iter().find(|name| is_text(name))).cloned()
    }

    /// A name that nobody has taken.
    fn file(&self) -> String {
        let files = self.files();
        let names = (2..).map(|number| format!("BINDERY-DEMO-{number}.md"));
        let mut names = std::iter::once("BINDERY-DEMO.md".to_owned()).chain(names);
        names.find(|name| !files.contains(name)).unwrap_or_default()
    }

    fn greeting(&self) -> String {
        "Hello! I am Bindery's demo model: I follow a script, and no real model is asked. I show \
         you what an agent does in this folder."
            .to_owned()
    }

    fn report(&self) -> String {
        let mut lines = vec![format!("Done. You said: “{}”.", shortened(&self.scene.asked, 200))];
        lines.push(String::new());
        lines.extend([Step::List, Step::Read, Step::Edit, Step::Ask].into_iter().filter_map(
            |step| {
                let ended = self.ended(step)?;
                Some(format!("- {}", self.told(step, &ended)))
            },
        ));
        lines.push(String::new());
        lines.push(
            "A real model would now have worked on what you asked; a demo cannot.".to_owned(),
        );
        lines.push(String::new());
        lines.push(SETTINGS.to_owned());
        lines.join("\n")
    }

    fn told(&self, step: Step, ended: &Ended) -> String {
        let what = match step {
            Step::List => "listing the files",
            Step::Read => "reading a file",
            Step::Edit => "writing a file",
            _ => "the command outside the sandbox",
        };
        match (step, ended) {
            (_, Ended::Denied) => format!("You did not allow {what}, so I left it and stopped."),
            (_, Ended::Badly(words)) => format!("{what} failed: {}", shortened(words, 200)),
            (Step::List, Ended::Well(_)) => {
                let files = self.files();
                let shown: Vec<_> = files.iter().take(5).map(|name| format!("`{name}`")).collect();
                match files.len() {
                    0 => "There is no file in this folder yet.".to_owned(),
                    1 => format!("There is one file here: {}.", shown.join("")),
                    count if count > 5 => {
                        format!("There are {count} files here: {} …", shown.join(", "))
                    }
                    count => format!("There are {count} files here: {}.", shown.join(", ")),
                }
            }
            (Step::Read, Ended::Well(text)) => {
                let name = self.to_read().unwrap_or_default();
                let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
                format!("`{name}` begins with “{}”.", shortened(first, 100))
            }
            (Step::Edit, Ended::Well(_)) => {
                format!("I wrote `{}`; you may delete it.", self.file())
            }
            (_, Ended::Well(text)) => {
                format!("`uname -s` ran outside the sandbox; it says “{}”.", shortened(text, 100))
            }
        }
    }

    fn short_answer(&self) -> String {
        format!(
            "You said: “{}”. I am only a demo and know one tour; say `again` to see it once more. \
             To talk to a real model, set `model` and `model_provider` in `config.toml`; `bindery \
             doctor` tells what is set.",
            shortened(&self.scene.asked, 200),
        )
    }
}

fn wants_again(asked: &str) -> bool {
    let asked = asked.to_lowercase();
    let mut words = asked.split(|c: char| !c.is_alphanumeric());
    words.any(|word| matches!(word, "again" | "tour" | "demo"))
}

fn is_text(name: &str) -> bool {
    let endings = [
        "md", "txt", "rst", "rs", "py", "js", "ts", "go", "c", "h", "java", "rb", "sh", "toml",
        "json", "yaml", "yml", "html", "css",
    ];
    name.rsplit_once('.').is_some_and(|(_, end)| endings.contains(&end.to_lowercase().as_str()))
}
