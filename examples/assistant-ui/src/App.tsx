// One chat: its history from the log, with all branches, then whatever is said from now on.
import { useChat, type UIMessage } from "@ai-sdk/react";
import { AssistantRuntimeProvider, type MessageFormatRepository } from "@assistant-ui/react";
import { useAISDKRuntime } from "@assistant-ui/react-ai-sdk";
import { DefaultChatTransport } from "ai";
import { useEffect, useState } from "react";
import { Ahead } from "./durations";
import { Thread } from "./Thread";

type History = {
  repository: MessageFormatRepository<UIMessage>;
  running: boolean; // an answer is under way
  now: number; // the server's clock
};

class Transport extends DefaultChatTransport<UIMessage> {
  readonly resumeStreamIsReplay = true; // the server gives an answer again from its start
}

const transport = new Transport({ api: "/api/chat" });

export function App() {
  const id = useChatId();
  const [loaded, setLoaded] = useState<{ id: string; history?: History; failed?: string }>();
  useEffect(() => {
    let wanted = true;
    read(id)
      .then((history) => wanted && setLoaded({ id, history }))
      .catch((error) => wanted && setLoaded({ id, failed: String(error) }));
    return () => {
      wanted = false;
    };
  }, [id]);
  if (loaded?.id !== id) return null;
  if (!loaded.history) return <p className="notice">The chat cannot be read: {loaded.failed}</p>;
  return <Chat key={id} id={id} history={loaded.history} />;
}

function Chat({ id, history }: { id: string; history: History }) {
  const [ahead] = useState(() => history.now - Date.now());
  const chat = useChat({ id, transport, resume: history.running });
  // The server ends the stream, so that how long a stopped thought took arrives before the end.
  const stop = async () => void (await fetch(`/api/chat/${id}/stop`, { method: "POST" }));
  const runtime = useAISDKRuntime({ ...chat, stop }, { messageRepository: history.repository });
  return (
    <Ahead value={ahead}>
      <AssistantRuntimeProvider runtime={runtime}>
        <header>
          <h1>Thoughtline</h1>
          <span>behind assistant-ui</span>
          <a href={`#${crypto.randomUUID()}`}>New chat</a>
        </header>
        <main>
          <Thread />
        </main>
      </AssistantRuntimeProvider>
    </Ahead>
  );
}

async function read(id: string): Promise<History> {
  const answer = await fetch(`/api/chats/${id}`);
  if (!answer.ok) throw new Error(`the server says ${answer.status}`);
  return answer.json();
}

/** The chat is named in the address, so that a reload and a bookmark find it again. */
function useChatId(): string {
  const [id, setId] = useState(() => location.hash.slice(1));
  useEffect(() => {
    const changed = () => setId(location.hash.slice(1));
    addEventListener("hashchange", changed);
    if (!location.hash) location.replace(`#${crypto.randomUUID()}`);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return id || "new";
}
