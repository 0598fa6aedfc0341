// The conversation, made of assistant-ui's primitives.
import {
  ActionBarPrimitive,
  AuiIf,
  BranchPickerPrimitive,
  ComposerPrimitive,
  ErrorPrimitive,
  MessagePrimitive,
  ThreadPrimitive,
  type ToolCallMessagePart,
  useAuiState,
} from "@assistant-ui/react";
import { MarkdownTextPrimitive } from "@assistant-ui/react-markdown";
import type { Metadata } from "./durations";
import { Reasoning } from "./Reasoning";

const QUESTIONS = ["Is 2027 a prime number?", "Is 91 a prime number?", "What can you do?"];

export function Thread() {
  return (
    <ThreadPrimitive.Root className="thread">
      <ThreadPrimitive.Viewport className="viewport">
        <AuiIf condition={(s) => s.thread.isEmpty}>
          <Welcome />
        </AuiIf>
        <ThreadPrimitive.Messages>
          {({ message }) => {
            if (message.role !== "user") return <Answer />;
            return message.composer.isEditing ? <Edit /> : <Question />;
          }}
        </ThreadPrimitive.Messages>
        <ThreadPrimitive.ViewportFooter className="footer">
          <Composer />
        </ThreadPrimitive.ViewportFooter>
      </ThreadPrimitive.Viewport>
    </ThreadPrimitive.Root>
  );
}

function Welcome() {
  return (
    <div className="welcome">
      <h2>What shall I think about?</h2>
      <p>Every thought is kept in the log, and so is how long it took.</p>
      {QUESTIONS.map((question) => (
        <ThreadPrimitive.Suggestion key={question} prompt={question} send>
          {question}
        </ThreadPrimitive.Suggestion>
      ))}
    </div>
  );
}

function Question() {
  return (
    <MessagePrimitive.Root className="question">
      <div className="bubble">
        <MessagePrimitive.Parts />
      </div>
      <div className="actions">
        <ActionBarPrimitive.Root hideWhenRunning>
          <ActionBarPrimitive.Edit>Edit</ActionBarPrimitive.Edit>
        </ActionBarPrimitive.Root>
        <Branches />
      </div>
    </MessagePrimitive.Root>
  );
}

function Edit() {
  return (
    <MessagePrimitive.Root className="question">
      <ComposerPrimitive.Root className="edit">
        <ComposerPrimitive.Input aria-label="Edit the message" autoFocus />
        <div className="actions">
          <ComposerPrimitive.Cancel>Cancel</ComposerPrimitive.Cancel>
          <ComposerPrimitive.Send>Send</ComposerPrimitive.Send>
        </div>
      </ComposerPrimitive.Root>
    </MessagePrimitive.Root>
  );
}

function Answer() {
  return (
    <MessagePrimitive.Root className="answer">
      <MessagePrimitive.Parts>
        {({ part }) => {
          if (part.type === "reasoning") return <Reasoning part={part} />;
          if (part.type === "tool-call") return <Tool part={part} />;
          if (part.type === "text") return <MarkdownTextPrimitive className="markdown" />;
          return null;
        }}
      </MessagePrimitive.Parts>
      <Ending />
      <MessagePrimitive.Error>
        <ErrorPrimitive.Root className="notice">
          <ErrorPrimitive.Message />
        </ErrorPrimitive.Root>
      </MessagePrimitive.Error>
      <div className="actions">
        <ActionBarPrimitive.Root hideWhenRunning>
          <ActionBarPrimitive.Copy>Copy</ActionBarPrimitive.Copy>
          <ActionBarPrimitive.Reload>Ask again</ActionBarPrimitive.Reload>
        </ActionBarPrimitive.Root>
        <Branches />
      </div>
    </MessagePrimitive.Root>
  );
}

function Tool({ part }: { part: ToolCallMessagePart }) {
  const given = Object.values(part.args).join(", ");
  const result = part.isError
    ? String((part.result as { error?: string }).error)
    : part.result;
  return (
    <p className="tool" data-error={part.isError || undefined}>
      <code>{`${part.toolName}(${given})`}</code>
      {result === undefined ? " …" : <> → {String(result)}</>}
    </p>
  );
}

const ENDINGS: Record<string, string> = {
  aborted: "Stopped.",
  capped: "The answer was cut off.",
  failed: "The model could not answer.",
  interrupted: "The server went away before the answer was complete. Ask again.",
};

/** How an answer ended, if not with an answer. */
function Ending() {
  const { outcome } = useAuiState((s) => s.message.metadata.custom) as Metadata;
  const stopped = useAuiState(
    ({ message: { status } }) => status?.type === "incomplete" && status.reason === "cancelled",
  );
  const said = ENDINGS[outcome ?? (stopped ? "aborted" : "")];
  return said ? <p className="notice">{said}</p> : null;
}

function Branches() {
  return (
    <BranchPickerPrimitive.Root hideWhenSingleBranch className="branches">
      <BranchPickerPrimitive.Previous aria-label="Previous version">‹</BranchPickerPrimitive.Previous>
      <span>
        <BranchPickerPrimitive.Number /> / <BranchPickerPrimitive.Count />
      </span>
      <BranchPickerPrimitive.Next aria-label="Next version">›</BranchPickerPrimitive.Next>
    </BranchPickerPrimitive.Root>
  );
}

function Composer() {
  return (
    <ComposerPrimitive.Root className="composer">
      <ComposerPrimitive.Input placeholder="Is 7919 prime?" aria-label="Message" autoFocus />
      <AuiIf condition={(s) => !s.thread.isRunning}>
        <ComposerPrimitive.Send>Send</ComposerPrimitive.Send>
      </AuiIf>
      <AuiIf condition={(s) => s.thread.isRunning}>
        <ComposerPrimitive.Cancel>Stop</ComposerPrimitive.Cancel>
      </AuiIf>
    </ComposerPrimitive.Root>
  );
}
