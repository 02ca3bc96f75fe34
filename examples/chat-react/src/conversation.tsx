import { useChat } from '@ai-sdk/react'
import { convertFileListToFileUIParts } from 'ai'
import {
  type FormEvent,
  type KeyboardEvent,
  use,
  useEffect,
  useRef,
  useState,
  useSyncExternalStore,
} from 'react'
import { asks, type ChatMessage, hasEnded, isLost, openChat, queueMessage, refresh, transport } from './chats'
import { Message, textOf } from './message'

const examples = ['To Lisbon, tomorrow morning', 'Two seats to Porto on Friday']

export function Conversation({ id, onChange }: { id: string; onChange: () => void }) {
  const open = use(openChat(id))
  const { chat, queue } = open
  const { messages, status, error, sendMessage, regenerate, resumeStream, stop } = useChat({ chat })
  const queued = useSyncExternalStore(queue.subscribe, () => queue.messages)
  const [text, setText] = useState('')
  const [editing, setEditing] = useState<string>()
  const [files, setFiles] = useState<FileList>()
  const [branch, setBranch] = useState<number>()
  const [fault, setFault] = useState<string>()
  const input = useRef<HTMLTextAreaElement>(null)
  const end = useRef<HTMLDivElement>(null)
  /** Whether the page follows the answer. It stops when the person scrolls up. */
  const isFollowing = useRef(true)
  const isCut = isLost(error)
  const isBusy = isCut || status === 'submitted' || status === 'streaming'
  const isAsking = !isBusy && asks(messages.at(-1))

  // The connection broke in the middle of an answer. The transport waits until the server returns.
  useEffect(() => void (isCut && resumeStream()), [isCut, resumeStream])
  useEffect(onChange, [status])
  useEffect(() => {
    if (isFollowing.current) end.current?.scrollIntoView({ block: 'end' })
  }, [messages, queued, status])

  /** New messages continue from the branch that the page shows. */
  const takeBranch = (): { body?: { branch: number } } => {
    setBranch(undefined)
    return branch === undefined ? {} : { body: { branch } }
  }

  async function say(text: string): Promise<void> {
    if (text.trim() === '' && !files) return
    isFollowing.current = true
    setText('')
    setFiles(undefined)
    setEditing(undefined)
    setFault(undefined)
    if (!isBusy) return sendMessage({ text, files, messageId: editing }, takeBranch())
    try {
      const parts: ChatMessage['parts'] = await convertFileListToFileUIParts(files)
      await queueMessage(open, [...parts, { type: 'text', text }])
    } catch (failure) {
      // The person can send it again.
      setFault((failure as Error).message)
      setText((now) => (now === '' ? text : now))
    }
  }

  /** The page leaves the answer before its end, and reads the result after the run has stopped. */
  async function halt(): Promise<void> {
    await stop()
    await transport.stop(id)
    await refresh(open)
  }

  function edit(message: ChatMessage): void {
    setEditing(message.id)
    setText(textOf(message))
    input.current?.focus()
  }

  function submit(event: FormEvent): void {
    event.preventDefault()
    void say(text)
  }

  function sendByEnter(event: KeyboardEvent): void {
    if (event.key === 'Enter' && !event.shiftKey && !event.nativeEvent.isComposing) submit(event)
    if (event.key === 'Escape' && editing) {
      setEditing(undefined)
      setText('')
    }
  }

  async function showBranch(number: number): Promise<void> {
    setBranch(number)
    await refresh(open, number)
  }

  const lastAnswer = messages.findLast(({ role }) => role === 'assistant')
  const isFree = !isBusy && !isAsking
  // The message shows why its run failed.
  const isShown = isCut || hasEnded(messages.at(-1))
  const shownFault = fault ?? (isShown ? undefined : error?.message)
  return (
    <>
      <main
        onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
          isFollowing.current = scrollHeight - scrollTop - clientHeight < 80
        }}
      >
        <div className="thread" aria-live="polite">
          {messages.length === 0 && queued.length === 0 && (
            <div className="hello">
              <h2>Where would you like to go?</h2>
              <p>I look up trains, and ask you before I book.</p>
              <p className="row">
                {examples.map((example) => (
                  <button key={example} onClick={() => void say(example)}>
                    {example}
                  </button>
                ))}
              </p>
            </div>
          )}
          {[...messages, ...queued].map((message) => (
            <Message
              key={message.id}
              message={message}
              isQueued={queued.includes(message)}
              onEdit={isFree && message.role === 'user' ? () => edit(message) : undefined}
              onRegenerate={
                isFree && message === lastAnswer
                  ? () => void regenerate({ messageId: message.id, ...takeBranch() })
                  : undefined
              }
              onBranch={isFree ? showBranch : undefined}
              onApprove={(approvalId, approved) =>
                void chat.addToolApprovalResponse({
                  id: approvalId,
                  approved,
                  ...(!approved && { reason: 'No.' }),
                })
              }
              onPick={(toolCallId, seat) =>
                void chat.addToolOutput({ tool: 'pick_seat', toolCallId, output: { seat } })
              }
              onAnswer={(toolCallId, output) =>
                // The asking call has no result yet, so the answer is sent separately.
                void Promise.resolve(
                  chat.addToolOutput({ tool: 'elicitation' as never, toolCallId, output: output as never }),
                ).then(() => sendMessage())
              }
            />
          ))}
          {status === 'submitted' && <p className="dots" aria-label="Waiting for the answer" />}
          {shownFault && (
            <p className="fault" role="alert">
              {shownFault}
            </p>
          )}
          <div ref={end} />
        </div>
      </main>
      <footer>
        {editing && (
          <p className="hint">You are editing a message. It gets a new answer. Press Esc to cancel.</p>
        )}
        {isAsking && <p className="hint">Your answer is needed above.</p>}
        <form onSubmit={submit} data-off={isAsking || undefined}>
          <label className="attach" title="Add pictures">
            <input
              type="file"
              accept="image/*"
              multiple
              aria-label="Add pictures"
              disabled={isAsking}
              onChange={(event) => setFiles(event.target.files ?? undefined)}
            />
            {files?.length ? `+ ${files.length}` : '+'}
          </label>
          <textarea
            ref={input}
            rows={1}
            aria-label="Message"
            placeholder={isAsking ? 'Answer first' : isBusy ? 'Next message' : 'Your message'}
            value={text}
            disabled={isAsking}
            onChange={(event) => setText(event.target.value)}
            onKeyDown={sendByEnter}
          />
          {isBusy && (
            <button type="button" onClick={() => void halt()}>
              Stop
            </button>
          )}
          <button className="primary" disabled={isAsking || (text.trim() === '' && !files)}>
            {isBusy ? 'Queue' : 'Send'}
          </button>
        </form>
      </footer>
    </>
  )
}
