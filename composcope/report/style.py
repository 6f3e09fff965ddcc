"""How the page looks, and the few lines of script that enlarge a picture."""

STYLE = """
:root{color-scheme:light dark;--ink:#1d2126;--soft:#59626d;--ground:#fff;--card:#f4f6f8;
--line:#d9dfe5;--link:#0b5cad}
@media(prefers-color-scheme:dark){:root{--ink:#e8ebee;--soft:#a3adb8;--ground:#14171b;
--card:#1e2329;--line:#343b44;--link:#7db8f5}}
*{box-sizing:border-box}html{scroll-behavior:smooth}
body{font:16px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif;margin:0 auto;
padding:12px 32px 64px;max-width:1280px;color:var(--ink);background:var(--ground)}
a{color:var(--link)}h1{font-size:1.65rem;line-height:1.2;margin:0}
h2{font-size:1.45rem;line-height:1.25;margin:4.5rem 0 .6rem;padding-top:1.2rem;
border-top:2px solid var(--line)}
h3{font-size:1.05rem;margin:1.6rem 0 .4rem}
.lead{font-size:1.1rem;line-height:1.4;margin:.3rem 0 .6rem;max-width:75rem}
.answer{font-size:1.08rem;max-width:52rem}.more{max-width:52rem}.none,.small,figcaption{color:var(--soft)}
.small{font-size:.88rem}
.first{display:grid;grid-template-columns:auto minmax(0,1fr);gap:40px;align-items:start}
.facts{margin:22px 0 0;padding:0;list-style:none;max-width:30rem}
.facts li{margin:0 0 16px;display:grid;grid-template-columns:4.6rem 1fr;gap:14px;
align-items:center}
.facts strong{font-size:2.2rem;line-height:1;text-align:right;font-variant-numeric:tabular-nums}
nav{font-size:.95rem;border-top:1px solid var(--line);padding-top:10px}
nav a{display:block;padding:2px 0}
.one{display:grid;grid-template-columns:8.6rem repeat(4,auto);gap:2px 10px;justify-content:start;
align-items:center}
.one .k{text-align:center;font-weight:600;font-size:.92rem}
.one .who{font-size:.8rem;line-height:1.2;color:var(--soft)}
.one .who b{display:block;font-size:.98rem;color:var(--ink)}
.shot{margin:0;position:relative;text-align:center;font-size:.82rem;line-height:1.25}
.shot figcaption{color:var(--ink);white-space:nowrap}
.shot.blank{width:var(--w,128px);height:var(--w,128px);border:1px dashed var(--line);display:grid;
place-items:center}
.pixels{image-rendering:pixelated;display:block;--w:var(--usual);width:var(--w);height:auto}
.over{position:relative;display:block}.over svg{position:absolute;inset:0;width:100%;height:100%}
button.zoom{all:unset;cursor:zoom-in;display:block;max-width:100%}
button.zoom:focus-visible{outline:3px solid var(--link)}
.shot button.zoom{display:inline-block;vertical-align:top}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(26rem,100%),1fr));
gap:1.2rem 2.4rem;align-items:start;margin:1rem 0}
.figures figure{margin:0;min-width:0}.figures figure.wide{grid-column:1/-1}
.figures button.zoom{width:100%}.figures svg{width:100%;height:auto;display:block}
figcaption{font-size:.88rem;line-height:1.4;margin-top:.3rem}
.sheets{display:flex;flex-wrap:wrap;gap:1.2rem 2rem;margin:1rem 0}
.sheets figure{margin:0;max-width:100%}
.sheets img{max-width:100%}
details{margin:.8rem 0;border:1px solid var(--line);border-radius:6px;padding:.1rem .9rem;
background:var(--ground)}
details[open]{padding-bottom:.8rem}summary{cursor:pointer;font-weight:600;padding:.5rem 0}
details details{font-size:.95rem}h4 code,p{overflow-wrap:anywhere}
h4{margin:1rem 0 .2rem;font-weight:400}
table{border-collapse:collapse;font-size:.84rem;line-height:1.35;width:100%;margin:.4rem 0}
th,td{padding:.35rem .5rem;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}
th{color:var(--soft);font-weight:600}
td span{display:inline-block;margin-right:.8em;white-space:nowrap}
td small{color:var(--soft)}
code{font-size:.8rem;background:var(--card);padding:.1rem .3rem;border-radius:4px;
overflow-wrap:anywhere}td{overflow-wrap:break-word}
td code span{display:inline;margin:0}
.mark{display:inline-block;min-width:1.1em;font-size:1.05em}
.dot{display:inline-block;width:.7em;height:.7em;border-radius:50%;margin-right:.4em}
.walks{display:flex;flex-wrap:wrap;gap:1.4rem;margin:1rem 0}.walks figure{margin:0}
.walk{width:var(--w);height:var(--h);background-size:calc(var(--w)*var(--n)) var(--h);
image-rendering:pixelated;animation:walk var(--time) steps(var(--n)) infinite}
@keyframes walk{to{background-position-x:calc(var(--w)*var(--n)*-1)}}
@media(prefers-reduced-motion:reduce){.walk{animation:none;background-position-x:100%}}
dialog{border:0;padding:16px;max-width:98vw;max-height:98vh;background:var(--ground);
color:var(--ink);overflow:auto;cursor:zoom-out}dialog::backdrop{background:rgb(0 0 0/.7)}
dialog button.zoom{cursor:zoom-out}
dialog svg{width:94vw;height:90vh;max-width:none!important;display:block}
dialog .pixels{width:var(--large)}dialog .over svg{width:100%;height:100%}
@media(min-width:1600px) and (min-height:1000px){body{max-width:1560px}.pixels{--w:var(--big)}
.shot.blank{--w:192px}}
@media(max-width:1100px){.first{display:block}}
@media(max-width:900px){body{padding:10px 16px 48px}h2{margin-top:3rem}
thead{display:none}table,tbody,tr,td{display:block;width:100%}
tr{border:1px solid var(--line);border-radius:6px;margin:.6rem 0;padding:.3rem .6rem}
td{border:0;padding:.15rem 0;display:grid;grid-template-columns:7.5rem minmax(0,1fr)}
td.blank{display:none}td::before{content:attr(data-head);color:var(--soft);font-size:.78rem}}
@media(max-width:720px){.one{align-items:start;grid-template-columns:repeat(4,minmax(0,5.3rem));
gap:4px 4px;justify-content:space-between}
.one .who{grid-column:1/-1;margin-top:.5rem}.one .corner{display:none}.shot{font-size:.72rem}
.pixels{--w:var(--small)}
.shot.blank{--w:64px}.shot figcaption{white-space:normal}
.facts li{grid-template-columns:3.6rem 1fr}.facts strong{font-size:1.8rem}.figures{gap:1.4rem 0}
dialog .pixels{width:var(--phone)}
dialog svg{width:200vw;height:auto}td span{white-space:normal;display:inline}}
@media print{details{break-inside:avoid}.walk{animation:none}}
"""

SCRIPT = """
const box = document.querySelector('dialog');
document.addEventListener('click', event => {
  if (box.open) { box.close(); return; }
  const picture = event.target.closest('.zoom');
  if (!picture) return;
  box.replaceChildren(picture.cloneNode(true));
  box.showModal();
});
"""
