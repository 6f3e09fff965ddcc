"""How it is touched: `composcope explore` serves one page, on which models are asked, watched and
looked into.

    serving    the process: a socket and a link to it    requests  what may be asked, with bounds
    guard      who may ask                               server    HTTP: answers and streams
    worker     the process that computes, and its queue  stage     draw, judge, look
    models     what each model is, and what it is asked  together  columns of one model in one batch
    verdict    what was found, in words                  pixel     what one pixel needs of a model
    static/    the page: ES modules and CSS

Only the worker imports `stage`, and with it torch: the process that answers the browser stays free
to answer."""
