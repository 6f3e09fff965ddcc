const box = document.querySelector('dialog');
document.addEventListener('click', event => {
  if (box.open) { box.close(); return; }
  const picture = event.target.closest('.zoom');
  if (!picture) return;
  box.replaceChildren(picture.cloneNode(true));
  box.showModal();
});
