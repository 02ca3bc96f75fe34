/** The style of a report's page, for light and dark, and for any width. Its fingerprint is in the page's policy. */
export const pageStyle = `
:root{color-scheme:light dark;--back:#f6f7f9;--card:#fff;--ink:#1a1d23;--soft:#5b6472;--line:#dfe3e8;--main:#2f6fde;--range:#9dbdf3;
--passed:#2c8a4b;--failed:#c93a3a;--error:#b7791f;--diverged:#7a4fc4}
@media (prefers-color-scheme:dark){:root{--back:#14171c;--card:#1d2128;--ink:#e7eaee;--soft:#9aa4b2;--line:#343b46;--main:#7aa7f7;--range:#3d5d94;
--passed:#5cbf7d;--failed:#f07272;--error:#e0ab4f;--diverged:#b394f0}}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:68rem;margin:0 auto;padding:1.5rem 1rem 4rem}
h1{font-size:1.45rem;margin:0;overflow-wrap:anywhere}
h2{font-size:1.05rem;margin:0 0 .75rem}
h3{font-size:.9rem;margin:1.25rem 0 .5rem;color:var(--soft)}
p{margin:.25rem 0}
.soft{color:var(--soft);overflow-wrap:anywhere}
.note{border-left:3px solid var(--error);padding-left:.75rem}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.75rem;margin:1.25rem 0 .75rem}
.tile,section{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:.75rem 1rem}
.tile b{display:block;font-size:1.4rem;line-height:1.3}
.tile span{color:var(--soft);font-size:.82rem;display:block;line-height:1.35;text-wrap:balance}
section{margin:.75rem 0;padding:1rem}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(18rem,100%),1fr));gap:.75rem}
.pair section{margin:0;min-width:0}
svg{display:block;overflow:visible}
svg text{font-size:11px;fill:var(--soft)}
.legend{display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;margin-top:.6rem}
.legend svg{display:inline-block}
.row{display:grid;grid-template-columns:minmax(5rem,11rem) 1fr minmax(9rem,14rem);gap:0 1rem;align-items:center}
.row .name{overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.row .words{color:var(--soft);font-size:.85rem;font-variant-numeric:tabular-nums}
.marks{display:flex;justify-content:space-between;color:var(--soft);font-size:.78rem;font-variant-numeric:tabular-nums}
.row .marks span{width:0;display:flex;justify-content:center}
.grid{stroke:var(--line)}
.base{stroke:var(--soft);stroke-opacity:.6}
.range{stroke:var(--range);stroke-width:6;stroke-linecap:round}
.dot,.bar{fill:var(--main)}
.whole{border-radius:4px;overflow:hidden}
.fill-passed,.better{fill:var(--passed)}.fill-failed,.worse{fill:var(--failed)}.fill-error{fill:var(--error)}.fill-diverged{fill:var(--diverged)}
.passed{color:var(--passed)}.failed{color:var(--failed)}.error{color:var(--error)}.diverged{color:var(--diverged)}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:.9rem}
th{text-align:left;font-weight:600;color:var(--soft)}
th,td{padding:.3rem .9rem .3rem 0;border-bottom:1px solid var(--line);vertical-align:top}
td.id{overflow-wrap:anywhere;min-width:8rem}
.number{text-align:right}
details{border-top:1px solid var(--line);padding:.5rem 0}
summary{cursor:pointer;overflow-wrap:anywhere}
dl{display:grid;grid-template-columns:minmax(5rem,max-content) 1fr;gap:.3rem 1rem;margin:.6rem 0}
dt{color:var(--soft)}
dd{margin:0;white-space:pre-wrap;overflow-wrap:anywhere;min-width:0}
code{font-family:ui-monospace,monospace;font-size:.87em;overflow-wrap:anywhere}
@media (max-width:40rem){.row{grid-template-columns:1fr auto;grid-template-areas:"name words" "plot plot";row-gap:.1rem;margin-bottom:.5rem}
.row .name{grid-area:name}.row .words{grid-area:words;text-align:right}.row svg,.row .marks{grid-area:plot}dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:.5rem}}
`
