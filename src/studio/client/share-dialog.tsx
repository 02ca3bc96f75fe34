import { quoteShellWord } from '../../core/format/shell-words.js'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { SharedView, ShareForm } from '../protocol.js'

interface ShareProps {
  id: string
  seq: number
  load: (as: { form: ShareForm; texts: boolean }) => Promise<SharedView>
  onClose: () => void
}

export function ShareDialog({ id, seq, load, onClose }: ShareProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [isBare, setBare] = useState(false)
  const [told, tell] = useState('')
  useEffect(() => dialog.current?.showModal(), [])
  const name = id.replaceAll(/[^\w-]+/g, '-').slice(0, 60)
  const attempt = (what: () => Promise<string>): void => {
    tell('…')
    what().then(tell, (error: unknown) =>
      tell(error instanceof Error ? error.message : 'It could not be made.'),
    )
  }
  const download = async (form: ShareForm, kind: 'html' | 'svg' | 'png'): Promise<string> => {
    const { content } = await load({ form, texts: !isBare })
    const blob =
      kind === 'png'
        ? await drawPng(content)
        : new Blob([content], { type: kind === 'svg' ? 'image/svg+xml' : 'text/html' })
    const file = `${name}${form === 'film' ? '-film' : ''}.${kind}`
    saveFile(blob, file)
    return `Saved ${file}. Look through it before you send it to another person.`
  }
  const copy = async (text: string): Promise<string> => {
    await navigator.clipboard.writeText(text)
    return `Copied: ${text}`
  }
  const link = `${location.origin}${location.pathname}#/session/${encodeURIComponent(id)}/${seq}`
  const command = `npx statewright sessions export ${quoteShellWord(id)} --as test --agent ./agent.mjs --out ${quoteShellWord(`test/${name}.test.mjs`)}`
  return (
    <dialog ref={dialog} class="fork share" aria-labelledby="share-title" onClose={onClose}>
      <form method="dialog">
        <h2 id="share-title">Share this session</h2>
        <div class="buttons" role="group" aria-label="Save">
          <button type="button" onClick={() => attempt(() => download('page', 'html'))}>
            HTML file
          </button>
          <button type="button" onClick={() => attempt(() => download('card', 'svg'))}>
            Picture (SVG)
          </button>
          <button type="button" onClick={() => attempt(() => download('card', 'png'))}>
            Picture (PNG)
          </button>
          <button type="button" onClick={() => attempt(() => download('film', 'svg'))}>
            Film (SVG)
          </button>
        </div>
        <label class="check">
          <input
            type="checkbox"
            checked={isBare}
            onChange={(event) => setBare(event.currentTarget.checked)}
          />
          Without texts: states, times, costs and names of tools alone
        </label>
        <div class="buttons" role="group" aria-label="Copy">
          <button type="button" onClick={() => attempt(() => copy(link))}>
            Copy the link to record {seq}
          </button>
          <button type="button" onClick={() => attempt(() => copy(command))}>
            Copy the command for a test
          </button>
        </div>
        <p>
          <small>
            The link opens in this browser. The test replays the session without a model, and has its texts.
          </small>
        </p>
        <p role="status">{told}</p>
        <div class="buttons">
          <button type="submit">Close</button>
        </div>
      </form>
    </dialog>
  )
}

function saveFile(blob: Blob, name: string): void {
  const address = URL.createObjectURL(blob)
  const anchor = Object.assign(document.createElement('a'), { href: address, download: name })
  anchor.click()
  setTimeout(() => URL.revokeObjectURL(address), 10_000)
}

async function drawPng(svg: string): Promise<Blob> {
  const image = new Image()
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`
  await image.decode()
  const scale = 2
  const canvas = Object.assign(document.createElement('canvas'), {
    width: image.naturalWidth * scale,
    height: image.naturalHeight * scale,
  })
  canvas.getContext('2d')?.drawImage(image, 0, 0, canvas.width, canvas.height)
  return new Promise((resolve, reject) => {
    canvas.toBlob(
      (blob) => (blob ? resolve(blob) : reject(new Error('This browser made no picture.'))),
      'image/png',
    )
  })
}
