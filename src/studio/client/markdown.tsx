import type { ComponentChildren } from 'preact'
import { useMemo } from 'preact/hooks'
import {
  BLOCKQUOTE,
  CHECKBOX,
  CODE_BLOCK,
  CODE_FENCE,
  CODE_INLINE,
  EQUATION_BLOCK,
  EQUATION_INLINE,
  HEADING_1,
  HEADING_6,
  IMAGE,
  ITALIC_AST,
  ITALIC_UND,
  LINE_BREAK,
  LINK,
  LIST_ITEM,
  LIST_ORDERED,
  LIST_UNORDERED,
  PARAGRAPH,
  RAW_URL,
  RULE,
  STRIKE,
  STRONG_AST,
  STRONG_UND,
  TABLE,
} from 'streaming-markdown'
import { isPicture } from '../shown-message.js'
import { type MarkdownNode, parseMarkdown } from './parse-markdown.js'

/** A Markdown text, built of elements that do nothing: no HTML of it is one, and nothing is loaded. */
export function Markdown({ text }: { text: string }) {
  const parts = useMemo(() => parseMarkdown(text), [text])
  return (
    <div class="markdown" dir="auto">
      {parts === null ? <p class="as-written">{text}</p> : parts.map(renderPart)}
    </div>
  )
}

function renderPart(part: MarkdownNode | string, key: number): ComponentChildren {
  if (typeof part === 'string') return part
  const { token, children, start } = part
  const inside = (): ComponentChildren => children.map(renderPart)
  if (token >= HEADING_1 && token <= HEADING_6) {
    // A heading of a message is none of the page.
    return (
      <p key={key} class={`heading level-${token - HEADING_1 + 1}`}>
        {inside()}
      </p>
    )
  }
  switch (token) {
    case PARAGRAPH:
      return <p key={key}>{inside()}</p>
    case LINE_BREAK:
      return <br key={key} />
    case RULE:
      return <hr key={key} />
    case BLOCKQUOTE:
      return <blockquote key={key}>{inside()}</blockquote>
    case CODE_BLOCK:
    case CODE_FENCE:
    case EQUATION_BLOCK:
      return (
        <pre key={key} tabIndex={0} data-language={part.language?.slice(0, 30)}>
          <code>{inside()}</code>
        </pre>
      )
    case CODE_INLINE:
    case EQUATION_INLINE:
      return <code key={key}>{inside()}</code>
    case ITALIC_AST:
    case ITALIC_UND:
      return <em key={key}>{inside()}</em>
    case STRONG_AST:
    case STRONG_UND:
      return <strong key={key}>{inside()}</strong>
    case STRIKE:
      return <s key={key}>{inside()}</s>
    case LIST_UNORDERED:
      return <ul key={key}>{inside()}</ul>
    case LIST_ORDERED:
      return (
        <ol key={key} start={start}>
          {inside()}
        </ol>
      )
    case LIST_ITEM:
      return <li key={key}>{inside()}</li>
    case CHECKBOX:
      return part.isChecked ? '[x] ' : '[ ] '
    case TABLE:
      return <Table key={key} rows={children} />
    case LINK:
    case RAW_URL:
      return (
        <Link key={key} address={part.address ?? ''}>
          {children.length > 0 ? inside() : null}
        </Link>
      )
    case IMAGE:
      return (
        <Image key={key} address={part.address ?? ''}>
          {children.length > 0 ? inside() : null}
        </Image>
      )
    default:
      return inside()
  }
}

/** The first row has the names of the columns. */
function Table({ rows }: { rows: MarkdownNode['children'] }) {
  const [head = [], ...body] = rows.map((row) => (typeof row === 'string' ? [] : row.children))
  return (
    <div class="wide" tabIndex={0} role="group" aria-label="Table">
      <table>
        <thead>
          <tr>
            {head.map((cell, at) => (
              <th key={at} scope="col">
                {renderPart(cell, at)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {body.map((cells, row) => (
            <tr key={row}>
              {cells.map((cell, at) => (
                <td key={at}>{renderPart(cell, at)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** A link to a web page says where it leads; of any other address, what was written is shown. */
function Link({ address, children }: { address: string; children: ComponentChildren }) {
  const to = readWebAddress(address)
  if (to === null) {
    return (
      <>
        {children} <small class="address">({address})</small>
      </>
    )
  }
  return (
    <>
      <a href={to.href} target="_blank" rel="noopener noreferrer">
        {children ?? address}
      </a>{' '}
      <small class="address">{to.host || to.pathname}</small>
    </>
  )
}

/** A picture that is in the text itself. The page does not load one of the web: the request would tell its server that the text is read. */
function Image({ address, children }: { address: string; children: ComponentChildren }) {
  if (isPicture(address)) return <img src={address} alt={toPlainText(children)} />
  return (
    <>
      [picture: <Link address={address}>{children}</Link>]
    </>
  )
}

function toPlainText(children: ComponentChildren): string {
  return Array.isArray(children) ? children.filter((one) => typeof one === 'string').join('') : ''
}

function readWebAddress(text: string): URL | null {
  const url = URL.canParse(text) ? new URL(text) : null
  return url !== null && ['https:', 'http:', 'mailto:'].includes(url.protocol) ? url : null
}
