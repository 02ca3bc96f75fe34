import { StrictMode, Suspense, useEffect, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { type ListedChat, listChats } from './chats'
import { Conversation } from './conversation'

const newId = (): string => crypto.randomUUID()

function App() {
  // The URL contains the chat's id, so that a reload or another tab shows the same chat.
  const [id, setId] = useState(location.hash.slice(1) || newId())
  const [chats, setChats] = useState<ListedChat[]>([])
  const [isListOpen, setListOpen] = useState(false)
  const showList = (): void => void listChats().then(setChats, () => undefined)
  useEffect(() => {
    location.hash = id
    setListOpen(false)
    showList()
  }, [id])
  useEffect(() => {
    const follow = (): void => setId(location.hash.slice(1) || newId())
    addEventListener('hashchange', follow)
    return () => removeEventListener('hashchange', follow)
  }, [])
  return (
    <div className="app">
      <nav data-open={isListOpen} aria-label="Chats">
        <button className="new" onClick={() => setId(newId())}>
          New chat
        </button>
        {chats.length === 0 && <p className="empty">No chats yet.</p>}
        <ul>
          {chats.map((chat) => (
            <li key={chat.id}>
              <a
                href={`#${chat.id}`}
                title={chat.title}
                aria-current={chat.id === id ? 'page' : undefined}
                onClick={() => setListOpen(false)}
              >
                {chat.title}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <div className="shade" hidden={!isListOpen} onClick={() => setListOpen(false)} />
      <div className="main">
        <header>
          <button className="menu" aria-expanded={isListOpen} onClick={() => setListOpen(!isListOpen)}>
            Chats
          </button>
          <h1>Trains</h1>
          <p className="script">A script plays the model.</p>
          <p className="offline" role="status">
            The server cannot be reached. Your messages are kept.
          </p>
        </header>
        <Suspense key={id} fallback={<p className="hello">Loading …</p>}>
          <Conversation id={id} onChange={showList} />
        </Suspense>
      </div>
    </div>
  )
}

createRoot(document.getElementById('root') as HTMLElement).render(
  <StrictMode>
    <App />
  </StrictMode>,
)
